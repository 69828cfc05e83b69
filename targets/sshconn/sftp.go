package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	sftpPacket   = 32 << 10
	nearRequests = 8  // in flight on a LAN: more make sshd's buffers grow
	farRequests  = 32 // in flight from farAway on
	farAway      = 5 * time.Millisecond
)

// errNoSFTP means that files go over a plain channel on this connection.
var errNoSFTP = errors.New("no SFTP")

// sftpSession is one SFTP session, opened for one file: between files no
// server process stays on the target.
type sftpSession struct {
	client   *sftp.Client
	s        *session
	requests int
}

// openSFTP opens a session, or returns errNoSFTP, which is remembered.
func (c *conn) openSFTP(ctx context.Context) (*sftpSession, error) {
	c.mu.Lock()
	no := c.noSFTP
	c.mu.Unlock()
	if no != "" {
		return nil, errNoSFTP
	}
	s, err := c.start(ctx, "subsystem", ssh.Marshal(struct{ Name string }{"sftp"}))
	if errors.Is(err, errNotStarted) {
		return nil, c.withoutSFTP("the server has no sftp subsystem")
	}
	if err != nil {
		return nil, err
	}
	x := &sftpSession{s: s, requests: nearRequests}
	rtt, err := c.roundTrip(ctx)
	if err != nil && ctx.Err() == nil {
		c.drop(err)
		return nil, c.lostError("transfer", err)
	}
	if rtt >= farAway {
		x.requests = farRequests
	}
	go func() { _, _ = io.Copy(io.Discard, s.ch.Stderr()) }()
	limited, cancel := context.WithTimeout(ctx, c.opening/2)
	defer cancel()
	answer := &opening{Reader: s.ch}
	err = x.bounded(limited, func() (err error) {
		x.client, err = sftp.NewClientPipe(answer, s.ch, sftp.MaxPacketChecked(sftpPacket),
			sftp.MaxConcurrentRequestsPerFile(x.requests), sftp.UseConcurrentWrites(true))
		return err
	})
	if err == nil {
		return x, nil
	}
	answer.rest()
	s.ch.Close()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the sftp server had not answered: %w", ctx.Err())
	}
	if err := c.ifLost(ctx, "transfer"); err != nil {
		return nil, err
	}
	return nil, c.withoutSFTP(answer.complaint(err))
}

// opening keeps the first bytes that an SFTP server sends.
type opening struct {
	io.Reader
	mu sync.Mutex
	b  []byte
}

func (o *opening) Read(p []byte) (int, error) {
	n, err := o.Reader.Read(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := headSize - len(o.b); room > 0 {
		o.b = append(o.b, p[:min(n, room)]...)
	}
	return n, err
}

// rest reads on for a moment, where text came: the library stops after 4 bytes.
func (o *opening) rest() {
	o.mu.Lock()
	text := len(o.b) > 0 && o.b[0] != 0
	o.mu.Unlock()
	if !text {
		return
	}
	read := make(chan struct{})
	go func() { // ends with the channel
		defer close(read)
		_, _ = o.Read(make([]byte, headSize))
	}()
	select {
	case <-read:
	case <-time.After(endTime):
	}
}

// complaint says what is wrong with an sftp server that did not begin as one.
// An answer begins with its length, whose first byte is 0; text there, taken for
// a length, is what OpenSSH calls "Received message too long".
func (o *opening) complaint(err error) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.b) == 0 && errors.Is(err, context.DeadlineExceeded):
		return "its sftp server does not answer"
	case len(o.b) > 0 && o.b[0] != 0:
		return fmt.Sprintf("the sftp server's answer begins with text, %q: a start-up file of the login shell (~/.bashrc, ~/.cshrc, config.fish) prints it (sftp says \"Received message too long\" then); "+
			"make it print only in interactive shells", firstLine(string(o.b)))
	}
	return "its sftp server does not answer as one: " + err.Error()
}

func (c *conn) withoutSFTP(why string) error {
	c.mu.Lock()
	c.noSFTP = why
	c.mu.Unlock()
	c.remark("files go over a plain channel, since " + why)
	return errNoSFTP
}

// bounded runs work until ctx ends; then the channel is closed, and work, which
// knows no context, is left to end with it.
func (x *sftpSession) bounded(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	go x.s.ch.Close() // on a dead link it blocks until the connection is closed
	select {
	case <-done:
	case <-time.After(endTime):
	}
	return ctx.Err()
}

func (x *sftpSession) close() {
	_ = x.client.Close() // closes the channel
}

// put writes in to tmp and renames it to name.
func (x *sftpSession) put(ctx context.Context, c *conn, tmp, name string, mode fs.FileMode, in io.Reader) error {
	defer x.close()
	err := x.bounded(ctx, func() error { return x.upload(tmp, name, mode, in) })
	return c.explainSFTP(ctx, err, name)
}

func (x *sftpSession) upload(tmp, name string, mode fs.FileMode, in io.Reader) error {
	f, err := x.client.Create(tmp)
	if err != nil {
		return err
	}
	n, err := f.ReadFromWithConcurrency(in, x.requests)
	if err == nil {
		err = f.Chmod(mode.Perm())
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	info, err := x.client.Stat(tmp)
	if err != nil {
		return err
	}
	if info.Size() != n {
		return fmt.Errorf("%d bytes were sent and %d arrived", n, info.Size())
	}
	if _, ok := x.client.HasExtension("posix-rename@openssh.com"); ok {
		return x.client.PosixRename(tmp, name)
	}
	// The plain rename of SFTP does not replace a file.
	if err := x.client.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return x.client.Rename(tmp, name)
}

// get copies name to w and checks the size of a regular file.
func (x *sftpSession) get(ctx context.Context, c *conn, name string, w io.Writer) error {
	defer x.close()
	err := x.bounded(ctx, func() error {
		f, err := x.client.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if info.IsDir() {
			return errors.New("it is a directory")
		}
		n, err := f.WriteTo(w)
		if err == nil && info.Mode().IsRegular() && n < info.Size() {
			err = fmt.Errorf("%d of %d bytes arrived", n, info.Size())
		}
		return err
	})
	return c.explainSFTP(ctx, err, name)
}

// explainSFTP finds the reason behind an error of an SFTP server, most of which
// are the one word "Failure": it repeats the attempt in the shell, which names it.
func (c *conn) explainSFTP(ctx context.Context, err error, name string) error {
	var status *sftp.StatusError
	switch {
	case err == nil, ctx.Err() != nil:
		return err
	case errors.Is(err, fs.ErrNotExist):
		return explainFile(targets.Exit{}, "No such file or directory")
	case errors.Is(err, fs.ErrPermission):
		return explainFile(targets.Exit{}, "Permission denied")
	case !errors.As(err, &status):
		if lost := c.ifLost(ctx, "transfer"); lost != nil {
			return lost
		}
		return err
	}
	exit, said, shellErr := c.script(ctx, `if [ -d "$2" ]; then echo "Is a directory" >&2; exit 1; fi
		t="$1/.kernsweep-try-$$"; dd if=/dev/zero of="$t" bs=4096 count=16; s=$?; rm -f "$t"; exit $s`, nil, nil, path.Dir(name), name)
	if shellErr == nil && !exit.OK() {
		return explainFile(exit, said)
	}
	return fmt.Errorf("the sftp server refused without naming a reason: %w", err)
}
