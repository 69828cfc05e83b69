package agent

import (
	"strconv"
	"strings"
	"syscall"
)

// listeners returns the socket inodes that hold port, from /proc/net.
func listeners(port int, udp bool) []string {
	files := []string{"/proc/net/tcp", "/proc/net/tcp6"}
	if udp {
		files = []string{"/proc/net/udp", "/proc/net/udp6"}
	}
	var inodes []string
	for _, f := range files {
		b, err := readFile(f)
		if err != nil {
			continue // no IPv6
		}
		inodes = append(inodes, parseListeners(string(b), port, udp)...)
	}
	return inodes
}

// parseListeners reads one table: sl local remote st tx:rx tr:when retrnsmt uid
// timeout inode. State 0A is LISTEN; UDP sockets have no such state.
func parseListeners(table string, port int, udp bool) []string {
	var inodes []string
	for _, ln := range strings.Split(table, "\n") {
		f := strings.Fields(ln)
		if len(f) < 10 || !udp && f[3] != "0A" {
			continue
		}
		n, err := strconv.ParseUint(f[1][strings.LastIndexByte(f[1], ':')+1:], 16, 16)
		if err == nil && int(n) == port && f[9] != "0" {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// owners finds the processes that hold one of the socket inodes.
func owners(inodes []string) []procInfo {
	var ps []procInfo
	for _, p := range processes() {
		dir := "/proc/" + strconv.Itoa(p.pid) + "/fd"
		if holds(dir, listDir(dir), inodes) { // empty when gone, or another user's
			ps = append(ps, p)
		}
	}
	return ps
}

func holds(dir string, fds, inodes []string) bool {
	for _, fd := range fds {
		link := readLink(dir + "/" + fd)
		if !strings.HasPrefix(link, "socket:[") {
			continue
		}
		for _, inode := range inodes {
			if link == "socket:["+inode+"]" {
				return true
			}
		}
	}
	return false
}

func portWords(port int, udp bool) string {
	if udp {
		return "UDP port " + strconv.Itoa(port)
	}
	return "port " + strconv.Itoa(port)
}

// portTaken says who holds the port already, "" when nobody does. A client
// would talk to that server and report credible numbers of the wrong program.
func portTaken(port int, udp bool) string {
	inodes := listeners(port, udp)
	if len(inodes) == 0 {
		return ""
	}
	return takenBy(port, udp, owners(inodes))
}

func takenBy(port int, udp bool, ps []procInfo) string {
	if len(ps) == 0 {
		return portWords(port, udp) + " is already taken by a process that cannot be seen (another user's, or the kernel's)"
	}
	return portWords(port, udp) + " is already taken by pid " + strconv.Itoa(ps[0].pid) + " (" + ps[0].name +
		"): end it, or choose another port"
}

// ownsPort reports whether the task holds the port; why is set when somebody
// else does.
func (j *Job) ownsPort(port int, udp bool) (owned bool, why string) {
	inodes := listeners(port, udp)
	if len(inodes) == 0 {
		return false, ""
	}
	ps := owners(inodes)
	mine := j.members()
	for _, p := range ps {
		if p.pid == syscall.Getpid() {
			return true, ""
		}
		for _, m := range mine {
			if m.pid == p.pid {
				return true, ""
			}
		}
	}
	return false, takenBy(port, udp, ps)
}
