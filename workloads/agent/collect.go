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
	wait  time.Duration // 0: as long as it runs
	keep  bool
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
		default:
			err = failure("unknown flag")
		}
		if err != nil {
			return d, failure(args[0] + " " + args[1] + ": " + err.Error() + "\n" + usage)
		}
		args = args[2:]
	}
	if d.pid == 0 && d.spool != "" {
		begin := beginOf(d.spool)
		d.start = begin["start"]
		if d.pid, err = strconv.Atoi(begin["pid"]); err != nil {
			return d, failure(d.spool + ": no spool of a run (it never began, or was collected already)")
		}
	}
	if d.pid == 0 || d.start == "" {
		return d, failure("-spool, or -pid and -start, are needed\n" + usage)
	}
	return d, nil
}

// beginOf reads the begin record of a spool; empty when there is none.
func beginOf(path string) map[string]string {
	b := make([]byte, 8<<10)
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	n, err := syscall.Pread(fd, b, int64(len(wire.Magic)))
	if err != nil {
		return nil
	}
	head, body, _ := strings.Cut(string(b[:n]), "\n")
	if !strings.HasPrefix(head, wire.TypeBegin+" ") {
		return nil
	}
	body, _, _ = strings.Cut(body, "\n\n") // a pair is never an empty line
	return wire.Pairs([]byte(body))
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
	until := after(Now(), d.wait)
	for alive(d.pid, d.start) && !hasEnd(d.spool) && Now() < until {
		pause(lookNS)
	}
	if err := printFile(d.spool); err != nil {
		return die(err)
	}
	done := hasEnd(d.spool)
	if done && alive(d.pid, d.start) {
		syscall.Kill(d.pid, syscall.SIGKILL)
	}
	if !d.keep && (done || !alive(d.pid, d.start)) {
		removeSpool(d.spool)
	}
	return 0
}

// stop ends the task of a run, whose agent then writes its end record. When the
// agent itself is dead, its orphans cannot be told from others and are left.
func stop(args []string) int {
	d, err := parseDetached(args)
	if err != nil {
		return die(err)
	}
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}
	for _, s := range signals {
		if !alive(d.pid, d.start) {
			return 0
		}
		if s == syscall.SIGKILL || len(taskOf(d.pid)) > 0 {
			for _, p := range taskOf(d.pid) {
				syscall.Kill(p, s)
			}
		}
		for until := Now() + graceNS; Now() < until && len(taskOf(d.pid)) > 0; {
			pause(lookNS)
		}
	}
	return 0
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
	return []string{goarch(), "pid=" + self(), "page=" + strconv.Itoa(syscall.Getpagesize())}
}
