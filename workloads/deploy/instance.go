package deploy

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"syscall"

	"kernsweep/targets/localproc"
)

// Instance names this process among all that share machines with it: the
// machine it runs on in this boot, its pid and its start time. Names of files on
// other machines hold it, so that the file's owner can be found again.
func Instance() string { return owner{here(), os.Getpid(), startOf(os.Getpid())}.String() }

// owner is an Instance, read.
type owner struct {
	machine string // 8 hexadecimal digits
	pid     int
	start   string // clock ticks since the machine's boot
}

func (o owner) String() string { return o.machine + "-" + strconv.Itoa(o.pid) + "-" + o.start }

// here stands for this boot of this machine, as far as pids are valid.
func here() string {
	id := localproc.BootID()
	if id == "" {
		id, _ = os.Hostname() // without /proc there is no better name
	}
	sum := sha256.Sum256([]byte(id + localproc.Space()))
	return hex.EncodeToString(sum[:4])
}

// startOf is when a process that lives began, "0" when it does not, or cannot be
// looked at.
func startOf(pid int) string {
	if s := localproc.Start(pid); s != "" {
		return s
	}
	return "0"
}

// gone reports whether o is a process of this machine that has ended. Of others
// nothing is known here.
func (o owner) gone() bool {
	if o.machine != here() {
		return false
	}
	if o.start == "0" { // of a machine without /proc
		return errors.Is(syscall.Kill(o.pid, 0), syscall.ESRCH)
	}
	return startOf(o.pid) != o.start
}

// newSpool is a name for a new spool.
func newSpool() (string, error) {
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return "", fmt.Errorf("naming a spool: %w", err)
	}
	return "kernsweep-" + Instance() + "-" + hex.EncodeToString(id) + ".spool", nil
}

const ownerPattern = `([0-9a-f]{8})-([0-9]{1,10})-([0-9]{1,20})`

var (
	spoolPattern = regexp.MustCompile(`^kernsweep-(?:` + ownerPattern + `-)?[0-9a-f]{12}\.spool$`)
	agentPattern = regexp.MustCompile(`^kernsweep-agent-(?:[a-z0-9]+-)?[0-9a-f]{12}-(?:` + ownerPattern + `-)?[0-9]+(?:\.[0-9a-z.-]+)?$`) // the ending: half a copy
)

// ownerIn reads the owner from a name that matched one of the patterns; ok is
// false when the name holds none.
func ownerIn(match []string) (o owner, ok bool) {
	if len(match) < 4 || match[1] == "" {
		return o, false
	}
	pid, err := strconv.Atoi(match[2])
	return owner{match[1], pid, match[3]}, err == nil
}
