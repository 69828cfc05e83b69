package results

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
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
	"unicode"

	"kernsweep/targets/localproc"
)

// Holder says which process may append to a journal.
type Holder struct {
	Owner  string    `json:"owner"` // login name, as given to OpenWriter
	Host   string    `json:"host"`
	PID    int       `json:"pid"`
	Start  string    `json:"start,omitempty"`   // field 22 of /proc/PID/stat
	PIDs   string    `json:"pid_ns,omitempty"`  // the namespace PID counts in: containers have their own
	BootID string    `json:"boot_id,omitempty"` // of the controller
	Since  time.Time `json:"since"`
	Token  string    `json:"token,omitempty"`   // makes each claim one of its kind
	BeatMS int64     `json:"beat_ms,omitempty"` // the file's time is renewed this often; 0: never
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "an unnamed process"
	}
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

// HeldBy says which process writes the run's journal now; ok is false when none
// does. Of a holder on another machine only its word is known. It disturbs no writer.
func (r *Run) HeldBy() (h Holder, ok bool) {
	c, err := readClaim(filepath.Join(r.dir, ownerFile))
	if err != nil || c.PID == 0 {
		return Holder{}, false
	}
	me := thisHolder("", time.Time{})
	switch {
	case c.sameKernel(me) && c.PIDs == me.PIDs:
		return c.Holder, c.alive()
	case c.Host == me.Host && c.BootID != me.BootID:
		return c.Holder, false // of an earlier start of this machine
	}
	return c.Holder, true
}

// claim is a holder's file: owner file, or the claim on a dead holder's place.
type claim struct {
	Holder
	raw  []byte
	path string
}

// key names what displaces the claim.
func (c claim) key() string {
	sum := sha256.Sum256(c.raw)
	return hex.EncodeToString(sum[:8])
}

// place is the file that claims what c holds.
func (c claim) place() string { return c.path + "." + c.key() }

// readClaim fails only when the file cannot be read: one whose content is no
// holder has PID 0.
func readClaim(path string) (claim, error) {
	b, err := readPlain(path)
	c := claim{raw: b, path: path}
	if err != nil {
		return c, err
	}
	if json.Unmarshal(b, &c.Holder) != nil || c.PID <= 0 {
		c.Holder = Holder{}
	}
	c.Since = c.Since.UTC()
	c.Owner, c.Host = plain(c.Owner), plain(c.Host)
	return c, nil
}

// plain makes a name that anybody may have written fit for a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// makeClaim links a whole file into place, so that nobody reads half of one, and
// fails with fs.ErrExist when another was first.
func makeClaim(path string, raw []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".claim-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync())
	if err == nil {
		err = os.Link(tmp.Name(), path)
		if info, e := tmp.Stat(); e == nil && links(info) == 2 {
			err = nil // a server's answer may be lost, and the repeated call then says "exists"
		}
		if errors.Is(err, syscall.EPERM) || noLocks(err) { // no hard links there
			err = writeNew(path, raw)
		}
	}
	closed := tmp.Close()
	return errors.Join(err, closed, os.Remove(tmp.Name()))
}

func links(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink)
	}
	return 1
}

func thisHolder(owner string, now time.Time) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var token [8]byte
	rand.Read(token[:]) // never fails (Go 1.24 and later)
	return Holder{Owner: owner, Host: host, PID: os.Getpid(), Start: localproc.Start(os.Getpid()), PIDs: localproc.Space(),
		BootID: localproc.BootID(), Since: now.UTC(), Token: hex.EncodeToString(token[:])}
}

// sameKernel says that both run, or ran, on one started machine, whatever
// hostnames its containers have.
func (h Holder) sameKernel(me Holder) bool { return h.BootID != "" && h.BootID == me.BootID }

// Here says that HeldBy is sure of the holder: it is of this machine, and of no
// container of its own. Of any other only OpenWriter finds out whether it lives.
func (h Holder) Here() bool {
	me := thisHolder("", time.Time{})
	return h.sameKernel(me) && h.PIDs == me.PIDs
}

// alive reports whether a holder of this machine and PID namespace still runs.
func (h Holder) alive() bool {
	start := localproc.Start(h.PID)
	err := syscall.Kill(h.PID, 0)
	if h.Start != "" && start == "" {
		_, e := os.Stat("/proc/" + strconv.Itoa(h.PID))
		return errors.Is(err, syscall.EPERM) && errors.Is(e, fs.ErrNotExist) // another user's, and /proc hides those
	}
	if h.Start != "" {
		return start == h.Start
	}
	return err == nil || errors.Is(err, syscall.EPERM)
}
