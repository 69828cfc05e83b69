package agent

import (
	"syscall"
)

// members lists the live processes of the task: those of its groups and the
// orphans that the agent adopted.
func (j *Job) members() []procInfo {
	j.mu.Lock()
	groups := append([]int(nil), j.groups...)
	j.mu.Unlock()
	var ps []procInfo
	self := syscall.Getpid()
	for _, p := range processes() {
		if p.state != 'Z' && p.pid != self && (p.ppid == self || contains(groups, p.group)) {
			ps = append(ps, p)
		}
	}
	return ps
}

func contains(s []int, n int) bool {
	for _, v := range s {
		if v == n {
			return true
		}
	}
	return false
}

// signal sends s to all processes of the task.
func (j *Job) signal(s syscall.Signal) {
	for _, p := range j.members() {
		syscall.Kill(p.pid, s)
	}
}

// end marks the task as over and asks its processes to stop.
func (j *Job) end(mark func(*Job)) {
	j.mu.Lock()
	first := !j.ended
	if first {
		mark(j)
		j.ended = true
		close(j.done)
	}
	j.mu.Unlock()
	if first {
		j.signal(syscall.SIGTERM)
	}
}

// killAll kills what is left of the task. Each death may hand the agent new
// orphans, so it looks until there are none; what survives is stuck in the kernel.
func (j *Job) killAll() {
	for range 20 {
		if len(j.members()) == 0 {
			return
		}
		j.signal(syscall.SIGKILL)
		pause(lookNS / 10)
	}
}
