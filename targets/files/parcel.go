// Package files copies files and folders to a target and from it, over any
// targets.Conn. What lies on the target already, by its content, is not sent
// again; what comes from the target never lands outside its folder.
package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Parcel is what is to be sent, the same for every target. It is safe for
// concurrent use.
type Parcel struct {
	dest    string // on the target; "" is the login's home
	into    bool   // dest is a folder, whether it is there or not
	entries []*entry
	bytes   int64
}

// entry is one file, folder or symbolic link of a parcel.
type entry struct {
	rel   string // below dest, with slashes
	from  string // here
	mode  fs.FileMode
	time  time.Time
	size  int64
	link  string // where a symbolic link points
	sums  [3]func() (string, error)
	depth int
}

// Pack looks at the files and folders that are to go to dest. A folder arrives in
// dest under its own name, symbolic links below it as links. A single file takes
// the name dest unless that is a folder there or ends in "/". The error names what
// cannot be sent: a device, a socket, a name with a line end.
func Pack(paths []string, dest string) (*Parcel, error) {
	if dest == "" || strings.ContainsAny(dest, "\n\x00") {
		return nil, fmt.Errorf("%q is no place on a target", dest)
	}
	p := &Parcel{into: len(paths) > 1 || strings.HasSuffix(dest, "/")}
	if dest = strings.TrimPrefix(dest, "~/"); dest == "" || dest == "~" {
		dest, p.into = ".", true
	}
	if p.dest = path.Clean(dest); !path.IsAbs(p.dest) {
		p.dest = "./" + p.dest // never taken for an option
	}
	seen := map[string]string{}
	for _, from := range paths {
		abs, err := filepath.Abs(from)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(abs)
		if first, ok := seen[base]; ok {
			return nil, fmt.Errorf("%s and %s have the same name, and would take each other's place", first, from)
		}
		seen[base] = from
		if err := p.add(abs, base); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Parcel) add(from, base string) error {
	info, err := os.Stat(from) // a link that was named is followed
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return p.put(from, base, info)
	}
	p.into = true
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && at == from {
			info, err = os.Stat(at)
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		return p.put(at, path.Join(base, filepath.ToSlash(rel)), info)
	})
}

func (p *Parcel) put(from, rel string, info fs.FileInfo) error {
	e := &entry{rel: rel, from: from, mode: info.Mode(), time: info.ModTime(), depth: strings.Count(rel, "/")}
	switch {
	case strings.ContainsAny(rel, "\n"):
		return fmt.Errorf("%q has a line end in its name: rename it, or pack it into an archive", rel)
	case info.IsDir():
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if strings.ContainsAny(to, "\n") {
			return fmt.Errorf("%q points to a name with a line end", rel)
		}
		e.link = to
	case info.Mode().IsRegular():
		e.size = info.Size()
		p.bytes += e.size
		for i, kind := range sumKinds() {
			e.sums[i] = sync.OnceValues(func() (string, error) { return kind.of(from) })
		}
		f, err := os.Open(from) // what cannot be read is found before anything is contacted
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), p.keep(e))
	default:
		return fmt.Errorf("%s is a %s, which cannot be sent", from, kindOf(info.Mode()))
	}
	return p.keep(e)
}

func (p *Parcel) keep(e *entry) error {
	p.entries = append(p.entries, e)
	return nil
}

// kindOf names what is neither file nor folder.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "file of an unknown kind"
}

// Bytes is the size of the parcel's files together.
func (p *Parcel) Bytes() int64 { return p.bytes }

func (e *entry) isFile() bool { return e.mode.IsRegular() }

// open reads the file of e, which must still be as large as it was.
func (e *entry) open(progress func(int64)) (io.ReadCloser, error) {
	f, err := os.Open(e.from)
	if err != nil {
		return nil, err
	}
	return &source{f, progress}, nil
}

// source tells how far a file has been read.
type source struct {
	*os.File
	progress func(int64)
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.File.Read(b)
	if s.progress != nil && n > 0 {
		s.progress(int64(n))
	}
	return n, err
}

// WriteTo hides that of the file, which would not be counted.
func (s *source) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{s})
}
