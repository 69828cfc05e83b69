package agent

import (
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"kernsweep/workloads/wire"
)

// runTask is `agent run`. Its exit status is 0 when the spool was delivered,
// whatever became of the task.
func runTask(args []string) int {
	o, err := parseRun(args)
	if err != nil {
		return die(err)
	}
	ignoreHangup()
	adoptOrphans()
	syscall.Setsid() // fails where the agent leads a session already
	if runtime.NumCPU() > 2 {
		runtime.GOMAXPROCS(2) // one for the sampler, one for what waits
	}
	file, err := createSpool(o.spool)
	if err != nil {
		return die(err)
	}
	o.spool = file.path
	spool, err := wire.NewWriter(file, o.limit)
	if err != nil {
		removeSpool(file.path)
		return die(failure("spool " + file.path + ": " + err.Error()))
	}
	writeBegin(spool, o)
	settle := syscall.NsecToTimespec(settleNS)
	syscall.Nanosleep(&settle, nil)
	status, reason := perform(spool, o)
	file.release()
	writeEnd(spool, status, reason)
	syscall.Close(file.fd)
	sayEnded(status, reason)
	if err := printFile(file.path); err != nil {
		return die(err)
	}
	if !o.keep {
		removeSpool(file.path)
	}
	return 0
}

// settleNS is how long the agent waits before it measures, so that the log-in
// that started it is over.
const settleNS = 300 * int64(time.Millisecond)

func writeBegin(w *wire.Writer, o runFlags) {
	start := ""
	if p, ok := readProc(syscall.Getpid()); ok {
		start = p.start
	}
	b := line(nil, "pid", self())
	b = line(b, "start", start)
	b = line(b, "boot_id", oneLine("/proc/sys/kernel/random/boot_id"))
	mono, wall := clocks()
	b = line(b, "wall", wall)
	b = line(b, "argv", strings.Join(o.task, " "))
	b = line(b, "agent", "go "+runtime.Version()+" "+runtime.GOARCH)
	b = line(b, "autogroup", oneLine("/proc/sys/kernel/sched_autogroup_enabled"))
	b = line(b, "cgroup", oneLine("/proc/self/cgroup"))
	w.Write(wire.TypeBegin, mono, "", b)
}

// line appends key=value; an unknown value is left out, a line end becomes a blank.
func line(b []byte, key, v string) []byte {
	if v == "" {
		return b
	}
	b = append(b, key...)
	b = append(b, '=')
	b = append(b, strings.ReplaceAll(v, "\n", " ")...)
	return append(b, '\n')
}

func writeEnd(w *wire.Writer, status, reason string) {
	b := line(nil, "status", status)
	b = line(b, "reason", reason)
	if kb := highWaterKB(); kb > 0 {
		b = line(b, "rss_kb", itoa(kb))
	}
	if us := cpuUS(); us > 0 {
		b = line(b, "cpu_us", itoa(us))
	}
	mono, wall := clocks()
	b = line(b, "wall", wall)
	w.Write(wire.TypeEnd, mono, "", b)
}

// cpuUS is the CPU time this process has used, in microseconds. The scheduler's
// own account comes first: rusage counts ticks, and whoever wakes with the tick
// is charged whole ones.
func cpuUS() int64 {
	const processCPUTime = 2 // CLOCK_PROCESS_CPUTIME_ID
	var ts syscall.Timespec
	if _, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, processCPUTime, uintptr(unsafe.Pointer(&ts)), 0); e == 0 {
		return ts.Nano() / 1000
	}
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Utime.Sec+ru.Stime.Sec)*1e6 + int64(ru.Utime.Usec+ru.Stime.Usec)
}

// perform runs the task and returns the end record's status and reason.
func perform(w *wire.Writer, o runFlags) (status, reason string) {
	fn := task(o.task[0])
	if fn == nil {
		return "failed", "this agent has no task " + strconv.Quote(o.task[0])
	}
	if o.listen != 0 {
		if why := portTaken(o.listen, o.udp); why != "" {
			return "failed", why
		}
	}
	l, err := newLoop(w, o)
	if err != nil {
		return "failed", err.Error()
	}
	defer l.close()
	return l.run(fn)
}

// sayEnded tells in one line how the task ended, before the spool goes over the
// link: the controller makes that durable first.
func sayEnded(status, reason string) {
	if reason != "" {
		status += ": " + strings.ReplaceAll(reason, "\n", " ")
	}
	writeAll(1, []byte(wire.Ended+status+"\n")) // a closed pipe is noticed at the spool
}

func die(err error) int {
	writeAll(2, []byte("kernsweep-agent: "+strings.TrimSpace(err.Error())+"\n"))
	return 2
}
