package sshconn

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"kernsweep/targets"
)

// cleanTimeout bounds the removal of what a failed transfer left.
const cleanTimeout = 10 * time.Second

// Put writes r to path in one step: to a temporary name beside it, and then by
// a rename. Its error wraps syscall.ENOSPC, EROFS, ETXTBSY, EACCES (no
// permission, or an executable on a noexec mount), ENOENT or EISDIR where the
// target gave that reason, and is a *targets.LinkError when the link failed.
// When ctx ends, r may still be inside one Read.
func (c *conn) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	tmp := path + ".kernsweep-" + strings.ToLower(rand.Text()[:8])
	in := &source{r: r}
	client, err := c.openSFTP(ctx)
	if err == nil {
		err = client.put(ctx, c, tmp, path, mode, in)
	} else if errors.Is(err, errNoSFTP) {
		err = c.putPlain(ctx, tmp, path, mode, in)
	}
	if err == nil && mode&0o111 != 0 {
		err = c.checkExecutable(ctx, path)
	}
	if err == nil {
		return nil
	}
	c.clean(tmp)
	if failed := in.err(); failed != nil {
		return fmt.Errorf("put %s on %s: reading the source: %w", path, c.h, failed)
	}
	return c.transferError(ctx, "put", path, err)
}

// Get copies the file at path to w. Its errors are like Put's; an error of w
// is returned as it is.
func (c *conn) Get(ctx context.Context, path string, w io.Writer) error {
	g := newGate(w)
	defer g.shut()
	client, err := c.openSFTP(ctx)
	if err == nil {
		err = client.get(ctx, c, path, g)
	} else if errors.Is(err, errNoSFTP) {
		err = c.getPlain(ctx, path, g)
	}
	switch {
	case err == nil:
		return nil
	case g.err() != nil:
		return g.err()
	}
	return c.transferError(ctx, "get", path, err)
}

// transferError names the file and the machine; a link error becomes one of
// the phase "transfer", and the context's own error stays recognisable.
func (c *conn) transferError(ctx context.Context, op, path string, err error) error {
	var link *targets.LinkError
	switch {
	case errors.As(err, &link):
		return &targets.LinkError{Phase: "transfer", Hop: link.Hop, Err: fmt.Errorf("%s %s: %w", op, path, link.Err)}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return fmt.Errorf("%s %s on %s: %w", op, path, c.h, err)
}

// script runs a POSIX script with args and returns what it wrote.
func (c *conn) script(ctx context.Context, text string, in io.Reader, out io.Writer, args ...string) (targets.Exit, string, error) {
	var problems bytes.Buffer
	argv := append([]string{"/bin/sh", "-c", "LC_ALL=C; export LC_ALL; " + text, "sh"}, args...)
	exit, err := c.Run(ctx, targets.Cmd{Argv: argv, Stdin: in, Stdout: out, Stderr: &problems})
	return exit, problems.String(), err
}

// putPlain sends the file over a plain channel. It takes two commands: after a
// lost link cat sees an ordinary end of file, and must not rename half a file.
func (c *conn) putPlain(ctx context.Context, tmp, path string, mode fs.FileMode, r io.Reader) error {
	counted := &counter{r: r}
	var out bytes.Buffer
	exit, said, err := c.script(ctx, `umask 077; cat > "$1" && chmod "$2" "$1" && wc -c < "$1"`, counted, &out,
		tmp, fmt.Sprintf("%o", mode.Perm()))
	if err != nil {
		return err
	}
	if !exit.OK() {
		return explainFile(exit, said)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64); err != nil || n != counted.n.Load() {
		return fmt.Errorf("%d bytes were sent and %q arrived", counted.n.Load(), strings.TrimSpace(out.String()))
	}
	exit, said, err = c.script(ctx, `if [ -d "$2" ]; then echo "Is a directory" >&2; exit 1; fi; mv -f "$1" "$2"`, nil, nil, tmp, path)
	if err != nil {
		return err
	}
	if !exit.OK() {
		return explainFile(exit, said)
	}
	return nil
}

func (c *conn) getPlain(ctx context.Context, path string, w io.Writer) error {
	exit, said, err := c.script(ctx, `exec cat < "$1"`, nil, w, path)
	if err != nil {
		return err
	}
	if !exit.OK() {
		return explainFile(exit, said)
	}
	return nil
}

// checkExecutable finds out that path lies on a noexec mount, and removes it then.
func (c *conn) checkExecutable(ctx context.Context, path string) error {
	exit, _, err := c.script(ctx, `if [ -f "$1" ] && [ ! -x "$1" ]; then rm -f "$1"; exit 9; fi`, nil, nil, path)
	if err == nil && exit.Code == 9 {
		return fmt.Errorf("programs cannot be run from there: the file system is mounted noexec: %w", syscall.EACCES)
	}
	return err
}

// clean removes a temporary file, also when the transfer's time is up.
func (c *conn) clean(tmp string) {
	select {
	case <-c.lost:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if exit, said, err := c.script(ctx, `rm -f "$1"`, nil, nil, tmp); err != nil || !exit.OK() {
		c.log.Sugar().Infof("could not remove %s: %v %s", tmp, err, said)
	}
}

// explainFile turns what a program said about a file into an error that code
// can recognise.
func explainFile(exit targets.Exit, said string) error {
	for _, k := range []struct {
		text  string
		errno syscall.Errno
		hint  string
	}{
		{"No space left", syscall.ENOSPC, "no room is left there"},
		{"Disk quota", syscall.EDQUOT, "the user's quota is used up"},
		{"Read-only file system", syscall.EROFS, "the file system is read-only; choose another folder, or remount it rw"},
		{"Text file busy", syscall.ETXTBSY, "the program there is running; end it first"},
		{"Is a directory", syscall.EISDIR, "it is a directory"},
		{"Permission denied", syscall.EACCES, "the user may not do that"},
		{"Operation not permitted", syscall.EPERM, "the user may not do that"},
		{"No such file", syscall.ENOENT, "the file, or the folder it should be in, does not exist"},
		{"nonexistent", syscall.ENOENT, "the folder it should be in does not exist"},
		{"Input/output error", syscall.EIO, "the storage of the target fails"},
	} {
		if strings.Contains(said, k.text) {
			return fmt.Errorf("%s (%q): %w", k.hint, lastLine(said), k.errno)
		}
	}
	return fmt.Errorf("the command on the target %v: %q", exit, lastLine(said))
}

type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}
