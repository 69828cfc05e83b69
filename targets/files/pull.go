package files

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kernsweep/targets"
)

//go:embed pull.sh
var pullScript string

// Pulled is what came of a pull from one target.
type Pulled struct {
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Left    map[string]int `json:"left_out,omitempty"` // by kind: "symbolic link"
	Refused []string       `json:"refused,omitempty"`  // names that lead elsewhere, or cannot be written, with why
}

// Pull copies the file or folder at from into the folder root, under its own
// name. Nothing is written outside root, whatever names the target gives; files
// are whole or are not there. progress may be nil. The error is a
// *targets.LinkError, wraps the context's, or is one of files here or there.
func Pull(ctx context.Context, c targets.Conn, from string, root *os.Root, progress func(int64)) (Pulled, error) {
	p := &puller{root: root, base: baseOf(from), progress: progress, got: Pulled{Left: map[string]int{}}}
	err := p.fetch(ctx, c, from, true)
	if p.names != nil && err == nil {
		for _, name := range p.names {
			if err = p.one(ctx, c, from, name); err != nil {
				break
			}
		}
	}
	return p.got, err
}

// Cat writes the file at from to w.
func Cat(ctx context.Context, c targets.Conn, from string, w io.Writer) error {
	return stream(ctx, c, from, []string{"0", "1"}, func(head string, r *bufio.Reader) error {
		_, err := r.WriteTo(w)
		return err
	})
}

// baseOf is the name under which from arrives; "." for a target's root or home.
func baseOf(from string) string {
	if b := path.Base(path.Clean(from)); b != "/" && b != ".." {
		return b
	}
	return "."
}

// Check says whether from can be pulled: ".." has no name to arrive under.
func Check(from string) error {
	if from == "" || strings.ContainsRune(from, 0) || path.Base(path.Clean(from)) == ".." {
		return fmt.Errorf("%q has no name of its own: write its whole path", from)
	}
	return nil
}

// Arrives is where from lands below a folder, for finding that two would meet.
func Arrives(from string) string { return baseOf(from) }

// puller is one Pull.
type puller struct {
	root     *os.Root
	base     string
	progress func(int64)
	got      Pulled
	names    []string // of files, where the target has no tar
}

// stream runs pull.sh and hands what it sends to take. The error of take wins
// over what it does to the command.
func stream(ctx context.Context, c targets.Conn, from string, how []string, take func(head string, r *bufio.Reader) error) error {
	if !path.IsAbs(from) {
		from = "./" + from // never taken for an option
	}
	r, w := io.Pipe()
	taken := make(chan error, 1)
	go func() {
		err := func() error {
			in := bufio.NewReaderSize(r, 64<<10)
			head, err := in.ReadSlice('\n') // no longer than the buffer
			if err == io.EOF || err == bufio.ErrBufferFull {
				return &Failed{fmt.Sprintf("the target answered %.100q", head)}
			} else if err != nil {
				return err
			}
			return take(string(head[:len(head)-1]), in)
		}()
		taken <- err
		r.CloseWithError(errors.Join(err, errTaken))
	}()
	var errs tail
	argv := append([]string{"/bin/sh", "-c", "LC_ALL=C; export LC_ALL\n" + pullScript, "sh", from}, how...)
	exit, err := c.Run(ctx, targets.Cmd{Argv: argv, Stdout: w, Stderr: &errs})
	switch {
	case err != nil:
		w.CloseWithError(err)
	case !exit.OK():
		w.CloseWithError(errBroken)
	default:
		w.Close()
	}
	terr := <-taken
	switch {
	case err != nil && !errors.Is(err, errTaken):
		return err
	case terr != nil && !errors.Is(terr, errBroken):
		return terr
	case err == nil && !exit.OK():
		return &Failed{said(errs.String(), exit)}
	}
	return terr
}

var (
	errTaken  = errors.New("no more is taken")
	errBroken = errors.New("the target broke off")
)

// tail keeps the end of what a program complained of.
type tail struct{ bytes.Buffer }

func (t *tail) Write(b []byte) (int, error) {
	const most = 4 << 10
	t.Buffer.Write(b)
	if n := t.Len() - most; n > most {
		t.Next(n)
	}
	return len(b), nil
}

func (p *puller) fetch(ctx context.Context, c targets.Conn, from string, packed bool) error {
	may := "0"
	if packed {
		may = "1"
	}
	return stream(ctx, c, from, []string{may, "0"}, func(head string, r *bufio.Reader) error {
		kind, facts, _ := strings.Cut(head, " ")
		switch kind {
		case "archive":
			return p.unpack(r)
		case "names":
			return p.listed(r)
		case "file":
			return p.file(p.base, factsOf(facts), r)
		}
		return &Failed{fmt.Sprintf("the target answered %.100q", head)}
	})
}

// listed takes the names of files in.
func (p *puller) listed(r *bufio.Reader) error {
	p.names = []string{}
	for {
		line, err := r.ReadSlice('\n') // no longer than the buffer
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		name := string(line)
		if len(p.names) >= namesMost {
			return &Failed{fmt.Sprintf("it holds more than %d files, and the target has no tar", namesMost)}
		}
		p.names = append(p.names, strings.TrimSuffix(name, "\n"))
	}
}

const namesMost = 100_000

// one fetches a file of a folder by itself. What goes wrong with the file alone
// does not end the pull.
func (p *puller) one(ctx context.Context, c targets.Conn, from, name string) error {
	at, ok := p.inside(name)
	if !ok {
		return nil
	}
	err := stream(ctx, c, path.Join(from, name), []string{"0", "1"}, func(head string, r *bufio.Reader) error {
		kind, facts, _ := strings.Cut(head, " ")
		if kind != "file" {
			return &Failed{fmt.Sprintf("the target answered %.100q", head)}
		}
		return p.file(at, factsOf(facts), r)
	})
	var failed *Failed
	if errors.As(err, &failed) {
		p.refuse(name, failed.Why)
		return nil
	}
	return err
}

// inside is where a name that the target gave lands; false: nowhere.
func (p *puller) inside(name string) (string, bool) {
	clean := path.Clean(name)
	if path.IsAbs(name) || !filepath.IsLocal(clean) || strings.ContainsRune(name, 0) {
		p.refuse(name, "it leads out of the folder")
		return "", false
	}
	return path.Join(p.base, clean), true
}

// refuse remembers a name that was not written. The first few are enough.
func (p *puller) refuse(name, why string) {
	const most = 20
	switch n := len(p.got.Refused); {
	case n < most:
		p.got.Refused = append(p.got.Refused, fmt.Sprintf("%q: %s", name, why))
	case n == most:
		p.got.Refused = append(p.got.Refused, "and others")
	}
}

// facts are a file's mode and time, as far as they are known.
type facts struct {
	mode fs.FileMode
	time time.Time // zero: not known
}

func factsOf(text string) facts {
	mode, stamp, _ := strings.Cut(text, " ")
	f := facts{mode: 0o644}
	if m, err := strconv.ParseUint(mode, 8, 32); err == nil {
		f.mode = fs.FileMode(m).Perm()
	}
	if s, err := strconv.ParseInt(stamp, 10, 64); err == nil {
		f.time = time.Unix(s, 0)
	}
	return f
}

// file writes one file, under another name until it is whole.
func (p *puller) file(at string, f facts, r io.Reader) error {
	if at == "." {
		return &Failed{"a file without a name"}
	}
	if dir := path.Dir(at); dir != "." {
		if err := p.root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	tmp := at + ".partial"
	_ = p.root.Remove(tmp) // of an earlier pull; what cannot be removed fails below
	w, err := p.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(&counted{w, p.progress}, r)
	if e := w.Chmod(f.mode); err == nil {
		err = e
	}
	if e := w.Close(); err == nil {
		err = e
	}
	if err == nil && !f.time.IsZero() {
		err = p.root.Chtimes(tmp, f.time, f.time)
	}
	if err == nil {
		err = p.root.Rename(tmp, at)
	}
	if err != nil {
		return errors.Join(err, p.root.Remove(tmp))
	}
	p.got.Files++
	p.got.Bytes += n
	return nil
}

// counted tells progress what is written.
type counted struct {
	w        io.Writer
	progress func(int64)
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if c.progress != nil {
		c.progress(int64(n))
	}
	return n, err
}
