package localproc

import (
	"os"
	"strconv"
	"strings"
)

// Stat is the state and the start, in clock ticks since the machine's, of a
// process: fields 3 and 22 of /proc/PID/stat (proc(5)). ok is false when it
// cannot be read: there is no such process, or /proc hides it.
func Stat(pid int) (state, start string, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", "", false
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:]) // the name may hold anything
	if len(f) < 20 {
		return "", "", false
	}
	return f[0], f[19], true
}

// BootID names this start of the machine, "" where /proc does not tell.
func BootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b))
}

// Space names the namespace that pids count in: containers have their own. It is
// "" where the kernel has none.
func Space() string {
	s, _ := os.Readlink("/proc/self/ns/pid")
	return s
}
