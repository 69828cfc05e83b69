package leases

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"syscall"

	"kernsweep/targets/localproc"
)

// machine is this controller as records name it.
type machine struct{ host, bootID, pids string }

func thisMachine() machine {
	m := machine{host: "unknown"}
	if h, err := os.Hostname(); err == nil {
		m.host = h
	}
	m.bootID = localproc.BootID() // without it every other process is a stranger
	m.pids = localproc.Space()    // without it pids are compared as they are
	return m
}

// sees says that pids of r mean the same here as there.
func (m machine) sees(r Record) bool { return m.near(r) && r.PIDs == m.pids }

// near says that r's boot time is ours.
func (m machine) near(r Record) bool { return m.bootID != "" && r.BootID == m.bootID }

// gone says that the process of a record, whose pids are ours, has ended. A
// process that only waits to be reaped is gone. One that cannot be looked at is
// not: /proc may be mounted with hidepid.
func gone(pid int, start string) bool {
	if pid <= 0 {
		return true
	}
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	state, now, ok := localproc.Stat(pid)
	if !ok {
		return false
	}
	return localproc.Dead(state) || start != "" && now != start
}

func newID() string {
	var b [12]byte
	rand.Read(b[:]) // never fails (Go 1.24 and later)
	return hex.EncodeToString(b[:])
}
