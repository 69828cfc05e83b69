package localproc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const zombie = 5 // SZOMB of sys/proc.h

// Stat is the state, "Z" or "R", and the start, in seconds since 1970, of a
// process. ok is false when there is none.
func Stat(pid int) (state, start string, ok bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return "", "", false
	}
	state = "R"
	if p.Proc.P_stat == zombie {
		state = "Z"
	}
	return state, fmt.Sprintf("%d.%06d", p.Proc.P_starttime.Sec, p.Proc.P_starttime.Usec), true
}

// BootID names this start of the machine, "" where the kernel does not tell.
func BootID() string {
	s, _ := unix.Sysctl("kern.bootsessionuuid")
	return s
}

// Space is "": here all processes count alike.
func Space() string { return "" }
