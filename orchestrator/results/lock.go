package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockFile  = "journal.lock"  // flock(2) on it; never replaced, so the lock cannot slip
	ownerFile = "journal.owner" // made with O_EXCL: says who, and holds where flock does not reach
)

// Holder says which process may append to a journal.
type Holder struct {
	Owner  string    `json:"owner"` // login name, as given to OpenWriter
	Host   string    `json:"host"`
	PID    int       `json:"pid"`
	Start  string    `json:"start,omitempty"`   // field 22 of /proc/PID/stat
	BootID string    `json:"boot_id,omitempty"` // of the controller
	Since  time.Time `json:"since"`
}

func (h Holder) String() string {
	return fmt.Sprintf("%s, process %d on %s, since %s", h.Owner, h.PID, h.Host, h.Since.UTC().Format(time.RFC3339))
}

// LockedError says that another process writes the journal.
type LockedError struct {
	Dir    string
	Holder Holder // zero when the holder left no name
	Hint   string
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.Holder.PID != 0 {
		who = e.Holder.String()
	}
	s := fmt.Sprintf("run %s is being written by %s", e.Dir, who)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

type runLock struct {
	dir  string
	lock *flock.Flock
	note string // a takeover, for the journal
}

// lockRun makes this process the one writer of a run directory.
func lockRun(dir, owner string, now time.Time) (*runLock, error) {
	l := &runLock{dir: dir, lock: flock.New(filepath.Join(dir, lockFile))}
	got, err := l.lock.TryLock()
	switch {
	case err != nil && !noLocks(err):
		return nil, fmt.Errorf("run %s: lock %s: %w", dir, lockFile, err)
	case err == nil && !got:
		h, _ := readHolder(dir)
		return nil, &LockedError{Dir: dir, Holder: h, Hint: "wait for it, or end it"}
	}
	if err := l.own(thisHolder(owner, now)); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	return l, nil
}

// noLocks tells a file system without flock (NFS without lockd, some FUSE).
func noLocks(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, syscall.EOPNOTSUPP)
}

func (l *runLock) own(me Holder) error {
	err := createHolder(l.dir, me)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	old, err := readHolder(l.dir)
	if err != nil {
		return fmt.Errorf("run %s: %s cannot be read: %w (remove it if no other kernsweep writes this run)", l.dir, ownerFile, err)
	}
	if old.Host != me.Host {
		return &LockedError{Dir: l.dir, Holder: old, Hint: fmt.Sprintf(
			"whether it still lives cannot be seen from %s; if it does not, remove %s", me.Host, filepath.Join(l.dir, ownerFile))}
	}
	if alive(old, me) {
		return &LockedError{Dir: l.dir, Holder: old, Hint: "wait for it, or end it"}
	}
	if err := l.displace(old); err != nil {
		return err
	}
	if err := createHolder(l.dir, me); err != nil {
		return fmt.Errorf("run %s: another process took the run over at the same moment: %w", l.dir, err)
	}
	l.note = fmt.Sprintf("taken over from %s, which is gone", old)
	return nil
}

// displace moves a dead holder's file aside; where flock works only one process
// gets here, elsewhere the content shows whether it was still the dead one's.
func (l *runLock) displace(old Holder) error {
	aside := filepath.Join(l.dir, fmt.Sprintf("%s.dead-%d", ownerFile, os.Getpid()))
	if err := os.Rename(filepath.Join(l.dir, ownerFile), aside); err != nil {
		return fmt.Errorf("run %s: take over from %s: %w", l.dir, old, err)
	}
	moved, err := holderAt(aside)
	if err == nil && moved != old {
		if back := os.Rename(aside, filepath.Join(l.dir, ownerFile)); back != nil {
			return fmt.Errorf("run %s: give %s back to %s: %w", l.dir, ownerFile, moved, back)
		}
		return &LockedError{Dir: l.dir, Holder: moved, Hint: "it took the run over at the same moment"}
	}
	return os.Remove(aside)
}

func (l *runLock) release() error {
	err := os.Remove(filepath.Join(l.dir, ownerFile))
	return errors.Join(err, l.lock.Close())
}

func createHolder(dir string, h Holder) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	// Linked into place whole: a reader never sees half a holder.
	tmp, err := os.CreateTemp(dir, ownerFile+".new-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(append(b, '\n'))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), filepath.Join(dir, ownerFile))
		if errors.Is(err, syscall.EPERM) || noLocks(err) { // no hard links there
			err = writeNew(filepath.Join(dir, ownerFile), append(b, '\n'))
		}
	}
	if rm := os.Remove(tmp.Name()); err == nil {
		err = rm
	}
	return err
}

func readHolder(dir string) (Holder, error) { return holderAt(filepath.Join(dir, ownerFile)) }

func holderAt(path string) (Holder, error) {
	var h Holder
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &h)
	}
	h.Since = h.Since.UTC()
	return h, err
}

func thisHolder(owner string, now time.Time) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return Holder{Owner: owner, Host: host, PID: os.Getpid(), Start: processStart(os.Getpid()),
		BootID: strings.TrimSpace(string(id)), Since: now.UTC()}
}

// alive reports whether old, a holder on this host, still runs.
func alive(old, me Holder) bool {
	if old.BootID != me.BootID {
		return false
	}
	if old.Start != "" {
		return processStart(old.PID) == old.Start
	}
	err := syscall.Kill(old.PID, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// processStart is field 22 of /proc/PID/stat, "" when there is no such process.
func processStart(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:]) // the name may hold anything
	if len(f) < 20 {
		return ""
	}
	if f[0] == "Z" || f[0] == "X" {
		return "" // dead, only not reaped yet
	}
	return f[19]
}
