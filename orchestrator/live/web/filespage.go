package web

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	shownText    = 256 << 10 // bytes of a file on its page: the last ones
	shownEntries = 2000      // of a folder
	copyPiece    = 256 << 10 // bytes of a download between two deadlines
)

// filesPage is a folder of a run directory, or a file of it as text.
type filesPage struct {
	head
	Run, Path string // Path: below the run directory; "." is the run directory
	Up        string // its folder; "" for the run directory
	Entries   []entry
	More      int // entries that are not shown
	Folder    bool
	Size      string
	Text      string
	Cut       int64 // bytes before the text
	Binary    bool
}

type entry struct {
	Name, Path, Size string
	Folder           bool
	When             time.Time
}

// openFile opens a regular file. Links that lead out of the run are refused by
// the root; what would hang or never end is refused here.
func openFile(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, errNoFile
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		_ = f.Close() // nothing was written
		return nil, nil, errNoFile
	}
	return f, info, nil
}

// fileOf opens what the address names below the run directory.
func (s *Server) fileOf(w http.ResponseWriter, r *http.Request) (run, name string, f *os.File, info fs.FileInfo, ok bool) {
	found, ok := s.findRun(w, r)
	if !ok {
		return "", "", nil, nil, false
	}
	name = strings.Trim(r.PathValue("path"), "/")
	if name == "" {
		name = "."
	}
	root, err := os.OpenRoot(found.Dir())
	if err == nil {
		defer root.Close()
		err = errNoFile
		if fs.ValidPath(name) && !strings.ContainsRune(name, 0) {
			f, info, err = openFile(root, name)
		}
	}
	if err != nil {
		s.problem(w, r, http.StatusNotFound, fmt.Sprintf("run %s: %v: %s", found.Name(), err, quoted(name)))
		return "", "", nil, nil, false
	}
	return found.Name(), name, f, info, true
}

func (s *Server) showFile(w http.ResponseWriter, r *http.Request) {
	run, name, f, info, ok := s.fileOf(w, r)
	if !ok {
		return
	}
	defer f.Close()
	p := filesPage{head: s.head(r, "Files of run "+run), Run: run, Path: name, Folder: info.IsDir()}
	if name != "." {
		p.Title, p.Up = name+" of run "+run, path.Dir(name)
	}
	var err error
	if info.IsDir() {
		err = p.list(f)
	} else {
		err = p.read(f, info.Size())
	}
	if err != nil {
		s.problem(w, r, http.StatusInternalServerError, fmt.Sprintf("run %s: %s cannot be read: %v", run, quoted(name), err))
		return
	}
	s.page(w, r, http.StatusOK, "files.tmpl", p)
}

func (p *filesPage) list(f *os.File) error {
	entries, err := f.ReadDir(-1)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		if a.IsDir() != b.IsDir() {
			if a.IsDir() {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // removed just now
		}
		if len(p.Entries) >= shownEntries {
			p.More++
			continue
		}
		x := entry{Name: e.Name(), Path: path.Join(p.Path, e.Name()), Folder: e.IsDir(), When: info.ModTime()}
		if !e.IsDir() {
			x.Size = sizeText(info.Size())
		}
		p.Entries = append(p.Entries, x)
	}
	return nil
}

func (p *filesPage) read(f *os.File, size int64) error {
	p.Size = sizeText(size)
	p.Cut = max(0, size-shownText)
	b, err := io.ReadAll(io.NewSectionReader(f, p.Cut, shownText))
	if err != nil {
		return err
	}
	if bytes.ContainsRune(b, 0) && !strings.HasSuffix(p.Path, ".log") {
		p.Binary = true
		return nil
	}
	if i := bytes.IndexByte(b, '\n'); p.Cut > 0 && i >= 0 {
		p.Cut += int64(i) + 1
		b = b[i+1:]
	}
	p.Text = plainText(string(b))
	return nil
}

func sizeText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// rawFile sends a file as it is, to be stored and never to be shown: it may be
// anything.
func (s *Server) rawFile(w http.ResponseWriter, r *http.Request) {
	run, name, f, info, ok := s.fileOf(w, r)
	if !ok {
		return
	}
	defer f.Close()
	if info.IsDir() {
		http.Redirect(w, r, fileAddress(run, "files", name), http.StatusFound)
		return
	}
	store(w, path.Base(name), "application/octet-stream")
	// A long file takes many pieces, each with a deadline of its own.
	http.ServeContent(&patient{ResponseWriter: w, rc: http.NewResponseController(w), each: s.limits.write}, r, "", info.ModTime(), f)
}

// store makes a browser keep what comes instead of showing it.
func store(w http.ResponseWriter, name, media string) {
	h := w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Content-Disposition", `attachment; filename="`+plainName(name)+`"`)
}

// plainName keeps what is harmless in a file's name.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
}

// patient gives each write a deadline of its own.
type patient struct {
	http.ResponseWriter
	rc   *http.ResponseController
	each time.Duration
}

func (p *patient) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		if err := p.rc.SetWriteDeadline(time.Now().Add(p.each)); err != nil {
			return n, err
		}
		k, err := p.ResponseWriter.Write(b[:min(len(b), copyPiece)])
		n += k
		if err != nil {
			return n, err
		}
		b = b[k:]
	}
	return n, nil
}
