package agent

import (
	"strconv"
	"strings"
	"syscall"
)

// procInfo is the part of /proc/PID/stat that identifies a process.
type procInfo struct {
	pid, ppid, group int
	name             string
	state            byte
	start            string // field 22, in ticks since boot
}

// readProc reads /proc/PID/stat; ok is false when there is no such process. It
// leaves little garbage: it runs for every process of the machine.
func readProc(pid int) (procInfo, bool) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return procInfo{}, false
	}
	defer syscall.Close(fd)
	var buf [768]byte
	n, err := syscall.Read(fd, buf[:])
	if err != nil || n <= 0 {
		return procInfo{}, false
	}
	return parseProc(string(buf[:n]))
}

// parseProc takes the command name between the first "(" and the last ")",
// since it may hold blanks and brackets itself.
func parseProc(s string) (p procInfo, ok bool) {
	open, end := strings.IndexByte(s, '('), strings.LastIndexByte(s, ')')
	if open < 1 || end < open {
		return p, false
	}
	p.name = s[open+1 : end]
	var errs [3]error
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(s[:open]))
	rest := strings.TrimSpace(s[end+1:])
	for i := 3; i <= 22; i++ { // the numbers of the fields in proc(5)
		var f string
		f, rest, _ = strings.Cut(rest, " ")
		switch {
		case f == "" || i == 3 && len(f) != 1:
			return p, false
		case i == 3:
			p.state = f[0]
		case i == 4:
			p.ppid, errs[1] = strconv.Atoi(f)
		case i == 5:
			p.group, errs[2] = strconv.Atoi(f)
		case i == 22:
			p.start = f
		}
	}
	return p, errs[0] == nil && errs[1] == nil && errs[2] == nil
}

// processes lists all processes that can be read.
func processes() []procInfo {
	var ps []procInfo
	for _, n := range listDir("/proc") {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProc(pid); ok {
			ps = append(ps, p)
		}
	}
	return ps
}

// alive reports whether the process pid that started at tick start still runs.
func alive(pid int, start string) bool {
	p, ok := readProc(pid)
	return ok && p.start == start && p.state != 'Z'
}

// oneLine reads a small file without its line end; "" when it cannot be read.
func oneLine(path string) string {
	b, err := readFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// highWaterKB is the largest resident set of this process so far; 0 if unknown.
// getrusage would count the program that this process was before exec.
func highWaterKB() int64 {
	b, err := readFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if !ok {
		return 0
	}
	f := strings.Fields(rest)
	if len(f) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
