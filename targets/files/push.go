package files

import (
	"archive/tar"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"kernsweep/targets"
)

// packFrom is how many files are worth a tar archive instead of one transfer each.
const packFrom = 8

//go:embed unpack.sh
var unpackScript string

//go:embed settle.sh
var settleScript string

// Pushed is what came of a push to one target.
type Pushed struct {
	Files   int      `json:"files"` // of the parcel
	Sent    int      `json:"sent"`  // of them; the others were there already
	Bytes   int64    `json:"bytes"` // sent
	Remarks []string `json:"remarks,omitempty"`
}

// Push sends the parcel to one target. Every file takes its place in one step,
// with its mode and time. progress is told of bytes as they are read, and may be
// nil. The error is a *targets.LinkError, wraps the context's, or is the target's
// file system's.
func (p *Parcel) Push(ctx context.Context, c targets.Conn, progress func(int64)) (Pushed, error) {
	s, err := p.survey(ctx, c)
	if err != nil {
		return Pushed{}, err
	}
	done := Pushed{Files: len(s.files)}
	var send, settle []*entry
	for n := range len(s.files) {
		e := s.files[n]
		same, err := s.same(n, e)
		if err != nil {
			return done, err
		}
		if !same {
			send = append(send, e)
			done.Bytes += e.size
			continue
		}
		if s.there[n].stat != fmt.Sprintf("%o %d", modeOf(e), e.time.Unix()) {
			settle = append(settle, e)
		}
	}
	if s.room >= 0 && done.Bytes > s.room {
		return Pushed{Files: done.Files}, &Failed{fmt.Sprintf("no room: %s has %s free, and %s are to be sent (a file that is replaced goes only after the new one is there)",
			p.dest, Size(s.room), Size(done.Bytes))}
	}
	settle, err = p.send(ctx, c, s, send, settle, progress)
	if err != nil {
		return Pushed{Files: done.Files}, err
	}
	done.Sent = len(send)
	done.Remarks, err = p.settle(ctx, c, s, settle)
	return done, err
}

// place is where an entry belongs on the target.
func (p *Parcel) place(s *survey, e *entry) string {
	if !s.into {
		return p.dest
	}
	return p.below(e.rel)
}

// below is a name in the parcel's folder, never one that looks like an option.
func (p *Parcel) below(rel string) string {
	name := path.Join(p.dest, rel)
	if !path.IsAbs(name) {
		name = "./" + name
	}
	return name
}

func (p *Parcel) send(ctx context.Context, c targets.Conn, s *survey, send, settle []*entry, progress func(int64)) ([]*entry, error) {
	others := 0
	for _, e := range p.entries {
		if !e.isFile() {
			others++
		}
	}
	if s.tar && (len(send) > packFrom || others > 0 && len(send) > 0) {
		return settle, p.sendPacked(ctx, c, send, progress)
	}
	if s.into { // folders and links come first
		if err := p.frame(ctx, c); err != nil {
			return nil, err
		}
	}
	for _, e := range send {
		in, err := e.open(progress)
		if err != nil {
			return nil, err
		}
		err = c.Put(ctx, p.place(s, e), modeOf(e), in)
		_ = in.Close() // it was only read
		if errors.Is(err, syscall.ENOENT) {
			err = fmt.Errorf("%w (end the place in / to have its folder made)", err)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, e := range p.entries {
		if e.mode.IsDir() {
			settle = append(settle, e)
		}
	}
	return append(settle, send...), nil
}

// frame makes the folders and links.
func (p *Parcel) frame(ctx context.Context, c targets.Conn) error {
	var list strings.Builder
	fmt.Fprintf(&list, "d %s\n", p.dest)
	for _, e := range p.entries {
		switch {
		case e.mode.IsDir():
			fmt.Fprintf(&list, "d %s\n", p.below(e.rel))
		case e.link != "":
			fmt.Fprintf(&list, "l %s\n%s\n", p.below(e.rel), e.link)
		}
	}
	_, err := script(ctx, c, `while IFS= read -r l; do
		n=${l#* }
		case $l in
		d*) [ -d "$n" ] || mkdir -p "$n" || exit 1 ;;
		l*) IFS= read -r to; [ "$(readlink "$n")" = "$to" ] || { rm -f "$n"; ln -s "$to" "$n"; } || exit 1 ;;
		esac
	done`, list.String())
	return err
}

// sendPacked sends files as one archive, into a folder beside their place, and
// then moves them there.
func (p *Parcel) sendPacked(ctx context.Context, c targets.Conn, send []*entry, progress func(int64)) error {
	tmp := p.below(".kernsweep-" + strings.ToLower(rand.Text()[:8]))
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := p.pack(w, send, progress)
		w.CloseWithError(err)
		packed <- err
	}()
	var errs tail
	exit, err := c.Run(ctx, targets.Cmd{Stdin: r, Stderr: &errs, Argv: []string{"/bin/sh", "-c",
		`LC_ALL=C; export LC_ALL; mkdir -p "$1" && cd "$1" && tar -xpof - && : > .complete || { s=$?; cd /; exit $s; }`, "sh", tmp}})
	r.CloseWithError(errors.New("the target takes no more"))
	perr := <-packed
	if err == nil && exit.OK() && perr == nil {
		_, err = script(ctx, c, unpackScript, p.list(send), tmp, p.dest)
		return err
	}
	p.clean(ctx, c, tmp)
	switch {
	case err != nil:
		return err
	case !exit.OK():
		return &Failed{said(errs.String(), exit)}
	}
	return perr
}

// clean removes what a failed transfer left, as far as the link allows.
func (p *Parcel) clean(ctx context.Context, c targets.Conn, tmp string) {
	ctx, cancel := targets.Afterwards(ctx, cleanTime)
	defer cancel()
	_, _ = script(ctx, c, `rm -rf "$1"`, "", tmp) // the error that led here is the one to tell
}

const cleanTime = 10 * time.Second

// pack writes folders, links and the files that are to be sent.
func (p *Parcel) pack(w io.Writer, send []*entry, progress func(int64)) error {
	wanted := map[*entry]bool{}
	for _, e := range send {
		wanted[e] = true
	}
	t := tar.NewWriter(w)
	for _, e := range p.entries {
		if e.isFile() && !wanted[e] {
			continue
		}
		h := &tar.Header{Name: e.rel, Mode: int64(modeOf(e)), ModTime: e.time.Truncate(time.Second), Format: tar.FormatGNU}
		switch {
		case e.mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, e.rel+"/"
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		default:
			h.Typeflag, h.Size = tar.TypeReg, e.size
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if !e.isFile() {
			continue
		}
		in, err := e.open(progress)
		if err != nil {
			return err
		}
		n, err := io.CopyN(t, in, e.size)
		_ = in.Close() // it was only read
		if err != nil {
			return fmt.Errorf("%s: %d of its %d bytes could be read: %w", e.from, n, e.size, err)
		}
	}
	return t.Close()
}

// list is what unpack.sh moves: top-level names first, then everything.
func (p *Parcel) list(send []*entry) string {
	wanted := map[*entry]bool{}
	for _, e := range send {
		wanted[e] = true
	}
	var b strings.Builder
	for _, e := range p.entries {
		if e.depth == 0 {
			b.WriteString("t " + e.rel + "\n")
		}
	}
	for _, e := range p.entries {
		switch {
		case e.mode.IsDir():
			b.WriteString("d " + e.rel + "\n")
		case e.link != "" || wanted[e]:
			b.WriteString("f " + e.rel + "\n")
		}
	}
	return b.String()
}

// settle gives modes and times to what was there already, or was sent alone. The
// deepest come first: a folder's time is the last to be set.
func (p *Parcel) settle(ctx context.Context, c targets.Conn, s *survey, list []*entry) (remarks []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(list, func(a, b *entry) int {
		switch {
		case a.isFile() && !b.isFile():
			return -1
		case b.isFile() && !a.isFile():
			return 1
		}
		return b.depth - a.depth
	})
	var b strings.Builder
	for _, e := range list {
		t := e.time.UTC()
		fmt.Fprintf(&b, "%o %s %s %s\n", modeOf(e), t.Format("200601021504.05"), t.Format("2006-01-02T15:04:05"), p.place(s, e))
	}
	out, err := script(ctx, c, settleScript, b.String())
	if out != "" {
		remarks = append(remarks, "times of files are not kept: the target's touch takes none")
	}
	return remarks, err
}

func modeOf(e *entry) fs.FileMode { return e.mode.Perm() }
