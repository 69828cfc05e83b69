// Package localproc tells the processes of the controller apart: by its start,
// the namespace that pids count in, the pid, and the process's own start. A pid
// alone may be another's by the time it is looked at.
package localproc

// Dead says that a state of Stat is that of a process that only waits to be reaped.
func Dead(state string) bool { return state == "Z" || state == "X" }

// Start is Stat's start of a process that lives, "" for any other.
func Start(pid int) string {
	state, start, ok := Stat(pid)
	if !ok || Dead(state) {
		return ""
	}
	return start
}
