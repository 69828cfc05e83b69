package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockFile  = "journal.lock"  // flock(2) on it; never replaced, so the lock cannot slip
	ownerFile = "journal.owner" // linked into place: says who, and holds where flock does not reach

	// beat is how often a writer renews its owner file; one on another machine
	// that missed silentBeats of them is gone.
	beat        = 10 * time.Second
	silentBeats = 3
)

type runLock struct {
	dir   string
	lock  *flock.Flock
	mine  claim
	notes []string // a takeover, a lock by owner file only: for the journal

	flocked bool
	local   bool // no other machine can have the file system mounted
	fsName  string
	say     func(string)
}

// lockRun makes this process the one writer of a run directory. It waits only
// for a holder on another machine, to see whether it still renews its claim.
func lockRun(ctx context.Context, dir string, o opening) (*runLock, error) {
	l := &runLock{dir: dir, lock: flock.New(filepath.Join(dir, lockFile)), say: o.say}
	l.fsName, l.local = fileSystem(dir)
	me := thisHolder(o.owner, o.now())
	me.BeatMS = o.beat.Milliseconds()
	raw, err := json.Marshal(me)
	if err != nil {
		return nil, err
	}
	l.mine = claim{Holder: me, raw: append(raw, '\n'), path: filepath.Join(dir, ownerFile)}
	if err := l.flock(ctx); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	if err := l.own(ctx); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	if l.flocked && l.local {
		l.sweep()
	}
	if !l.flocked {
		l.notes = append(l.notes, fmt.Sprintf("the run directory is on %s, where flock does not work: it is locked by %s only", l.fsName, ownerFile))
	}
	return l, nil
}

// sweep removes what killed writers left half made; under the lock nobody else
// is at it.
func (l *runLock) sweep() {
	for _, half := range []string{".claim-*", "." + journalFile + "*"} {
		left, _ := filepath.Glob(filepath.Join(globSafe(l.dir), half))
		for _, f := range left {
			_ = os.Remove(f)
		}
	}
}

// flock takes the kernel's lock, where there is one.
func (l *runLock) flock(ctx context.Context) error {
	path := l.lock.Path()
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("run %s: %s is no plain file (%s): remove it if no other kernsweep writes this run", l.dir, lockFile, info.Mode().Type())
	}
	got, err := l.lock.TryLock()
	switch {
	case noLocks(err):
		return nil
	case err != nil:
		return fmt.Errorf("run %s cannot be locked: %w%s", l.dir, err, advice(l.dir, err))
	case got:
		l.flocked = true
		return nil
	}
	c, err := readClaim(l.mine.path)
	locked := &LockedError{Dir: l.dir, Holder: c.Holder, Hint: "wait for it, or end it"}
	if l.local || err != nil || c.sameKernel(l.mine.Holder) || c.BeatMS == 0 {
		return locked
	}
	// A file server may keep the lock of a machine that is gone.
	gone, err := l.silent(ctx, c)
	if err == nil && !gone {
		return locked
	}
	return err
}

// noLocks tells a file system without flock (NFS without lockd, some FUSE).
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP)
}

// own makes the owner file, in a dead holder's place if need be.
func (l *runLock) own(ctx context.Context) error {
	for range 100 {
		err := makeClaim(l.mine.path, l.mine.raw)
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			what := advice(l.dir, err)
			if what == "" {
				what = ": put runs on another file system, with --runs DIR"
			}
			return fmt.Errorf("run %s cannot be locked: %s cannot be made: %w%s", l.dir, ownerFile, err, what)
		}
		chain, err := l.holders()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just ended
		}
		if err != nil {
			return fmt.Errorf("run %s: who holds it cannot be read: %w (remove %s if no other kernsweep writes this run)", l.dir, err, l.mine.path)
		}
		gone, err := l.gone(ctx, chain[len(chain)-1])
		if err != nil {
			return err
		}
		if !gone {
			continue
		}
		if won, err := l.displace(chain); err != nil || won {
			return err
		}
	}
	return &LockedError{Dir: l.dir, Hint: "others take it over and over: look with kernsweep status"}
}

// holders are the owner file's claim, the claim on its place, the claim on that
// one's: the last really holds.
func (l *runLock) holders() ([]claim, error) {
	c, err := readClaim(l.mine.path)
	if err != nil {
		return nil, err
	}
	chain := []claim{c}
	for {
		c, err = readClaim(c.place())
		if errors.Is(err, fs.ErrNotExist) {
			return chain, nil
		}
		if err != nil {
			return nil, err
		}
		chain = append(chain, c)
	}
}

// gone decides whether a holder is dead; the error says that it lives, or that
// nobody can tell.
func (l *runLock) gone(ctx context.Context, c claim) (bool, error) {
	me := l.mine.Holder
	switch {
	case l.flocked && (l.local || c.sameKernel(me)):
		return true, nil // its lock is free, on a file system where that proves it
	case c.sameKernel(me) && c.PIDs == me.PIDs && c.PID > 0:
		if c.alive() {
			return false, &LockedError{Dir: l.dir, Holder: c.Holder, Hint: "wait for it, or end it"}
		}
		return true, nil
	case c.PID > 0 && c.BeatMS == 0:
		return false, &LockedError{Dir: l.dir, Holder: c.Holder, Hint: fmt.Sprintf(
			"whether it still lives cannot be seen from %s; if it does not, remove %s", me.Host, c.path)}
	}
	return l.silent(ctx, c)
}

// displace takes the place of a dead holder. Of all who try, one makes the claim
// on its place; the owner file is replaced in one step and never missing.
func (l *runLock) displace(chain []claim) (bool, error) {
	first, last := chain[0], chain[len(chain)-1]
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("run %s: take over from %s: %w%s", l.dir, last.Holder, err, advice(l.dir, err))
	}
	if err := makeClaim(last.place(), l.mine.raw); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return false, nil // another is first: look at that one
		}
		return fail(err)
	}
	now, err := readClaim(l.mine.path)
	if err != nil || now.key() != first.key() {
		_ = os.Remove(last.place()) // all is over: the claim means nothing
		return false, nil
	}
	if err := os.Rename(last.place(), l.mine.path); err != nil {
		return fail(errors.Join(err, os.Remove(last.place())))
	}
	for _, c := range chain[1:] {
		_ = os.Remove(c.path) // of those who died taking over
	}
	l.notes = append(l.notes, fmt.Sprintf("taken over from %s, which is gone", last.Holder))
	return true, syncDir(l.dir)
}

// held says whether the owner file is still this process's: a machine that
// slept may have been given up for dead.
func (l *runLock) held() error {
	c, err := readClaim(l.mine.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("run %s: its directory was moved or deleted, or %s was removed, while it was being written", l.dir, ownerFile)
	case err != nil:
		return nil // it cannot be seen now; if the file system is ill, the write will tell
	case c.key() != l.mine.key():
		return fmt.Errorf("run %s was taken over by %s, because this process was silent for too long", l.dir, c.Holder)
	}
	return nil
}

// release gives the run free, if it is still ours. The claim on one's own place
// keeps others from taking over in between; it needs no room on a full disk.
func (l *runLock) release() error {
	if l.held() != nil {
		return l.lock.Close()
	}
	place := l.mine.place()
	if err := os.Link(l.mine.path, place); errors.Is(err, fs.ErrExist) {
		return l.lock.Close()
	} else if err == nil {
		defer os.Remove(place)
	}
	return errors.Join(os.Remove(l.mine.path), l.lock.Close())
}
