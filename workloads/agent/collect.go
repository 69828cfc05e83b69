package agent

import (
	"strconv"
	"strings"
	"syscall"
	"time"

	"kernsweep/workloads/wire"
)

// detached names a run that lost its link.
type detached struct {
	spool string
	pid   int
	start string
	begun int64         // when, by Now
	wait  time.Duration // 0: as long as it runs
	// within bounds the wait as well, from when the run began; 0: no bound.
	within time.Duration
	keep   bool
}

func parseDetached(args []string) (d detached, err error) {
	for len(args) > 0 {
		if args[0] == "-keep" {
			d.keep, args = true, args[1:]
			continue
		}
		if len(args) < 2 {
			return d, failure(args[0] + " needs a value\n" + usage)
		}
		switch args[0] {
		case "-spool":
			d.spool = args[1]
		case "-pid":
			d.pid, err = strconv.Atoi(args[1])
		case "-start":
			d.start = args[1]
		case "-wait":
			d.wait, err = positive(args[1])
		case "-within":
			d.within, err = positive(args[1])
		default:
			err = failure("unknown flag")
		}
		if err != nil {
			return d, failure(args[0] + " " + args[1] + ": " + err.Error() + "\n" + usage)
		}
		args = args[2:]
	}
	if d.pid == 0 && d.spool != "" {
		var begin map[string]string
		begin, d.begun = beginOf(d.spool)
		d.start = begin["start"]
		if d.pid, err = strconv.Atoi(begin["pid"]); err != nil {
			return d, failure(d.spool + ": " + wire.NoSpool + " (it never began, or was collected already)")
		}
		if begin["boot_id"] != oneLine("/proc/sys/kernel/random/boot_id") {
			d.start = "of another boot" // no process has it
		}
	}
	if d.pid == 0 || d.start == "" {
		return d, failure("-spool, or -pid and -start, are needed\n" + usage)
	}
	return d, nil
}

// beginOf reads the begin record of a spool and its time; empty when there is none.
func beginOf(path string) (begin map[string]string, at int64) {
	b := make([]byte, 8<<10)
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0
	}
	defer syscall.Close(fd)
	n, err := syscall.Pread(fd, b, 0)
	if err != nil || !strings.HasPrefix(string(b[:n]), wire.Magic+wire.TypeBegin+" ") {
		return nil, 0
	}
	head, body, _ := strings.Cut(string(b[len(wire.Magic):n]), "\n")
	body, _, _ = strings.Cut(body, "\n\n") // a pair is never an empty line
	if f := strings.Fields(head); len(f) > 1 {
		at, _ = strconv.ParseInt(f[1], 10, 64)
	}
	return wire.Pairs([]byte(body)), at
}

// collect waits until the run has written its end record, or no longer lives,
// and prints what there is. A run that waits on its dead link is ended then.
func collect(args []string) int {
	d, err := parseDetached(args)
	if err == nil && d.spool == "" {
		err = failure("-spool is needed\n" + usage)
	}
	if err != nil {
		return die(err)
	}
	ignoreHangup()
	until := min(after(Now(), d.wait), after(d.begun, d.within))
	for alive(d.pid, d.start) && endOf(d.spool) == nil && Now() < until {
		pause(lookNS)
	}
	lives := alive(d.pid, d.start) // before the look at the end: who has ended has written it
	end := endOf(d.spool)
	if end != nil {
		sayEnded(end["status"], end["reason"])
	}
	if err := printFile(d.spool); err != nil {
		if endOf(d.spool) == nil && end != nil {
			err = failure(d.spool + ": " + wire.NoSpool + ": it was removed meanwhile")
		}
		return die(err)
	}
	switch {
	case end != nil && lives:
		syscall.Kill(d.pid, syscall.SIGKILL)
	case end == nil && lives:
		writeAll(2, []byte("kernsweep-agent: "+wire.GoesOn+": pid "+itoa(int64(d.pid))+"\n"))
	}
	if !d.keep && (end != nil || !lives) {
		removeSpool(d.spool)
	}
	return 0
}

// stop ends the task of a run, whose agent then writes its end record. Of a dead
// agent's task those are ended that carry its mark.
func stop(args []string) int {
	d, err := parseDetached(args)
	if err != nil {
		return die(err)
	}
	ignoreHangup()
	if alive(d.pid, d.start) {
		syscall.Kill(d.pid, syscall.SIGCONT) // a stopped agent would never write its end
	}
	for i, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL} {
		task := d.task()
		if len(task) == 0 && (s == syscall.SIGKILL || !alive(d.pid, d.start)) {
			return 0
		}
		for _, p := range task {
			syscall.Kill(p, s)
		}
		for until := Now() + graceNS/int64(min(i+1, 2)); Now() < until && len(d.task()) > 0; {
			pause(lookNS)
		}
	}
	return 0
}

// task lists the processes of the run's task: those of its agent, and those that
// carry its mark.
func (d *detached) task() []int {
	var pids []int
	if alive(d.pid, d.start) {
		pids = taskOf(d.pid)
	}
	mark := markOf(d.spool)
	if len(mark) < len(wire.TaskVariable)+1+leastMark {
		return pids
	}
	for _, p := range processes() {
		if p.state != 'Z' && p.pid != d.pid && !contains(pids, p.pid) && marked(p.pid, mark) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// leastMark is the length of a mark that is told from every other.
const leastMark = 12

// markOf is what the environment of a task's processes holds.
func markOf(spool string) string { return wire.TaskVariable + "=" + wire.TaskOf(spool) }

// marked reports whether the environment that a process was started with, as far
// as it may be read, holds mark.
func marked(pid int, mark string) bool {
	b, err := readFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && strings.Contains("\x00"+string(b), "\x00"+mark+"\x00")
}

// taskOf lists the processes that belong to the task of the agent pid: its
// children and everything in their process groups.
func taskOf(pid int) []int {
	ps := processes()
	var groups, pids []int
	own, ok := readProc(pid)
	for _, p := range ps {
		if p.ppid == pid && p.state != 'Z' && ok && p.group != own.group {
			groups = append(groups, p.group)
		}
	}
	for _, p := range ps {
		if p.pid != pid && p.state != 'Z' && (p.ppid == pid || contains(groups, p.group)) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// selfTest checks what every task needs and prints one line.
func testMachine() int {
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"clock", testClock}, {"floating point", testFloat}, {"/proc", testProc},
		{"spool", testSpool}, {"socket", testSocket}, {"threads and processes", testProcess},
	} {
		if err := c.do(); err != nil {
			return die(failure("self-test: " + c.name + ": " + err.Error()))
		}
	}
	writeAll(1, []byte("ok kernsweep-agent "+strings.Join(selfFacts(), " ")+"\n"))
	return 0
}

func selfFacts() []string {
	return []string{goarch(), wire.Resumable, "pid=" + self(), "page=" + strconv.Itoa(syscall.Getpagesize())}
}
