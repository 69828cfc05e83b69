package leases

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	format   = 1
	sizeMost = 1 << 20 // bytes of a file that is read: a queue of thousands
)

// state is a lease file: who has the thing, and who waits for it, in order.
type state struct {
	Format int      `json:"format"`
	Key    string   `json:"key"`
	Holder *Record  `json:"holder"` // nil: nobody
	Queue  []Record `json:"queue,omitempty"`
	// Damaged says why the file that was found first could not be believed; it
	// stands until somebody holds the key again.
	Damaged string `json:"damaged,omitempty"`

	seen sight
}

// sight is how a lease file looked, to tell whether its holder lives.
type sight struct {
	content string
	holder  string // without those who wait
	inode   uint64
	mtime   int64 // ns
}

// load reads a key's file. One that is not there is an empty state, one that
// cannot be believed has garbage; the error is the folder's.
func (f *Folder) load(key string) (state, error) {
	s, err := f.loadFile(filepath.Join(f.dir, fileOf(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return state{Format: format, Key: key}, nil
	}
	if err != nil {
		return s, err
	}
	if s.Key != key && s.Damaged == "" {
		s.Damaged = fmt.Sprintf("its file was that of %q", s.Key)
	}
	if s.Key != key {
		s = state{Format: format, Key: key, Damaged: s.Damaged, seen: s.seen}
	}
	return s, nil
}

func (f *Folder) loadFile(path string) (state, error) {
	b, st, err := readFile(path)
	if err != nil {
		return state{}, err
	}
	var s state
	err = json.Unmarshal(b, &s)
	switch {
	case err == nil && s.Format > format:
		return s, fmt.Errorf("%s was written by a newer kernsweep (format %d, this one knows %d): use that one", path, s.Format, format)
	case strings.Trim(string(b), "\x00") == "":
		s = state{Damaged: "its file was empty"}
	case err != nil:
		s = state{Damaged: "its file was damaged (" + err.Error() + ")"}
	case s.Format != format || s.Key == "" || s.Holder != nil && s.Holder.ID == "":
		s = state{Damaged: "its file was no lease"}
	}
	s.seen = sight{content: string(b), inode: st.Ino, mtime: changed(&st)}
	for i := range s.Queue {
		s.Queue[i].plain()
	}
	if s.Holder != nil {
		s.Holder.plain()
		s.seen.holder = fmt.Sprintf("%s %s %v", s.Holder.ID, s.Holder.Until, s.Holder.UntilBoot)
	}
	return s, nil
}

// readFile reads a regular file that anybody may have put there.
func readFile(path string) ([]byte, syscall.Stat_t, error) {
	var st syscall.Stat_t
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, st, err
	}
	defer file.Close()
	if err := syscall.Fstat(int(file.Fd()), &st); err != nil {
		return nil, st, err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return nil, st, fmt.Errorf("%s is not a regular file: remove it", path)
	}
	b, err := io.ReadAll(io.LimitReader(file, sizeMost+1))
	if err == nil && len(b) > sizeMost {
		err = fmt.Errorf("%s is larger than %d bytes: remove it", path, sizeMost)
	}
	return b, st, err
}

// save puts a key's file in place whole, or removes one that says nothing.
func (g *guard) save(s state) error {
	path := filepath.Join(g.f.dir, fileOf(s.Key))
	if s.Holder == nil && len(s.Queue) == 0 && s.Damaged == "" {
		if err := g.check(); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return g.put(path, append(b, '\n'))
}

// put replaces a file by one that everybody may read and write.
func (g *guard) put(path string, b []byte) error {
	tmp, err := newFile(g.f.dir, b)
	if err != nil {
		return err
	}
	err = g.check()
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

// newFile makes a file under a name of its own, with mode 0666 whatever the umask.
// Nothing is synced: after a power cut no process is left whose lease it was.
func newFile(dir string, b []byte) (string, error) {
	path := filepath.Join(dir, tmpPrefix+newID())
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o666)
	if err != nil {
		return "", err
	}
	_, err = file.Write(b)
	if err == nil {
		err = file.Chmod(0o666)
	}
	if e := file.Close(); err == nil {
		err = e
	}
	var detail *fs.PathError
	if errors.As(err, &detail) {
		err = detail.Err // its name would be another one each time
	}
	if err != nil {
		_ = os.Remove(path)
		return "", fmt.Errorf("write a file there: %w", err)
	}
	return path, nil
}

const tmpPrefix = ".new-"

// tidyAge of a file that nobody is about to put in place: that takes no time, and
// only who has the folder's lock does it.
const tidyAge = time.Second

// tidy removes what killed processes were about to put in place.
func (g *guard) tidy() {
	files, _ := filepath.Glob(filepath.Join(g.f.dir, tmpPrefix+"*")) // the pattern is right
	for _, path := range files {
		if st, err := os.Lstat(path); err == nil && time.Since(st.ModTime()) > tidyAge {
			_ = os.Remove(path)
		}
	}
}

// publish puts a new file at path unless there is one: then the error is
// fs.ErrExist.
func publish(path string, b []byte) error {
	tmp, err := newFile(filepath.Dir(path), b)
	if err != nil {
		return err
	}
	err = renameNew(tmp, path)
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOSYS) { // a file system without it
		err = os.Link(tmp, path)
	}
	_ = os.Remove(tmp)
	return err
}
