package leases

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kernsweep/targets/localproc"
)

const (
	mutexFile = "folder.lock" // flock(2) on it
	mutexExcl = "taken.lock"  // exists while somebody has the lock, where flock does not work
	mutexTry  = 5 * time.Millisecond
	// mutexTries at least fail before a holder is taken for stuck: a process that
	// was stopped itself must not judge by the time alone.
	mutexTries = 200
)

// errBroken says that another process took us for stuck and broke our lock.
var errBroken = errors.New("another process took this one for stuck")

// guard is the folder's lock, held for one change of it.
type guard struct {
	f    *Folder
	file *os.File // flock; nil: exclusive file
	mark string   // content of the lock's file while it is ours
}

// change runs do under the folder's lock, within a bounded time. Whoever holds
// the lock for long was stopped in the middle; then it is broken.
func (f *Folder) change(ctx context.Context, do func(*guard) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, f.times.giveUp, fmt.Errorf("its lock was not to be had within %s", f.times.giveUp))
	defer stop()
	for {
		g, err := f.lock(ctx)
		if err != nil {
			return err
		}
		err = do(g)
		g.unlock()
		if !errors.Is(err, errBroken) {
			return err
		}
	}
}

// stuck watches who has the lock.
type stuck struct {
	mark  string
	since time.Time
	tries int
}

// is says that the same holder was met for so long that it must be stopped.
func (s *stuck) is(mark string, patience time.Duration) bool {
	if mark != s.mark || s.tries == 0 {
		*s = stuck{mark: mark, since: time.Now()}
	}
	s.tries++
	return s.tries > mutexTries && time.Since(s.since) > patience
}

func (f *Folder) lock(ctx context.Context) (*guard, error) {
	var watch stuck
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		g, err := f.tryLock(&watch)
		if g != nil || err != nil {
			return g, err
		}
		tick.Reset(mutexTry + rand.N(mutexTry))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryLock gives nil when somebody else has it.
func (f *Folder) tryLock(watch *stuck) (*guard, error) {
	path := filepath.Join(f.dir, mutexFile)
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if err = publish(path, nil); errors.Is(err, fs.ErrNotExist) { // the whole folder was removed
			err = f.make()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = f.flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil && sameFile(file, path):
		g := &guard{f: f, file: file, mark: fmt.Sprintf("%s process %d\n", newID(), os.Getpid())}
		_ = file.Truncate(0)
		_, _ = file.WriteAt([]byte(g.mark), 0) // on a full disk a stopped holder is only told by its silence
		return g, nil
	case err == nil:
	case errors.Is(err, syscall.EWOULDBLOCK):
		mark := make([]byte, 100)
		n, _ := file.ReadAt(mark, 0)
		if watch.is(string(mark[:n]), f.times.mutex) {
			f.breakLock(file, path)
			*watch = stuck{}
		}
	case noFlock(err):
		_ = file.Close()
		return f.tryExclusive(watch)
	default:
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, file.Close()
}

// noFlock tells a file system without flock (NFS without lockd, some FUSE).
func noFlock(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP)
}

func sameFile(file *os.File, path string) bool {
	ours, err := file.Stat()
	if err != nil {
		return false
	}
	theirs, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, theirs)
}

// breakLock puts the lock that a stopped process holds aside. When that goes on,
// check tells it before it changes anything.
func (f *Folder) breakLock(held *os.File, path string) {
	aside := filepath.Join(f.dir, tmpPrefix+"stuck-"+newID())
	if !sameFile(held, path) || os.Rename(path, aside) != nil {
		return
	}
	if !sameFile(held, aside) { // another process broke it at the same moment, and this is a new one
		_ = os.Link(aside, path)
	}
	_ = os.Remove(aside)
}

// tryExclusive is tryLock by a file that exists while the lock is held. It names
// its holder, whose death is seen at once on the same machine.
func (f *Folder) tryExclusive(watch *stuck) (*guard, error) {
	path := filepath.Join(f.dir, mutexExcl)
	start := localproc.Start(os.Getpid())
	g := &guard{f: f, mark: fmt.Sprintf("%s %d %s %s %s\n", newID(), os.Getpid(), start, f.machine.bootID, f.machine.pids)}
	err := publish(path, []byte(g.mark))
	if err == nil {
		return g, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	old, _, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.leftover(string(old)) || watch.is(string(old), f.times.mutex) {
		*watch = stuck{}
		aside := filepath.Join(f.dir, tmpPrefix+"stuck-"+newID())
		if os.Rename(path, aside) == nil {
			if moved, _, err := readFile(aside); err == nil && string(moved) != string(old) {
				_ = os.Link(aside, path) // another process broke it at the same moment, and this is a new one
			}
			_ = os.Remove(aside)
		}
	}
	return nil, nil
}

// leftover says that the process that made an exclusive file is gone.
func (f *Folder) leftover(mark string) bool {
	var id, start, boot, pids string
	var pid int
	if n, _ := fmt.Sscan(mark, &id, &pid, &start, &boot, &pids); n < 5 {
		return false
	}
	return f.machine.sees(Record{BootID: boot, PIDs: pids}) && gone(pid, start)
}

// check says whether the lock is still ours, right before a change.
func (g *guard) check() error {
	if g.file != nil {
		if sameFile(g.file, filepath.Join(g.f.dir, mutexFile)) {
			return nil
		}
		return errBroken
	}
	if b, _, err := readFile(filepath.Join(g.f.dir, mutexExcl)); err == nil && string(b) == g.mark {
		return nil
	}
	return errBroken
}

func (g *guard) unlock() {
	if g.file != nil {
		_ = g.file.Close() // the lock ends with the file
		return
	}
	if g.check() == nil {
		_ = os.Remove(filepath.Join(g.f.dir, mutexExcl))
	}
}
