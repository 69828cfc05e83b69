package agent

import (
	"syscall"
	"time"

	"kernsweep/workloads/wire"
)

// Waiting times of the loop, in nanoseconds.
const (
	graceNS   = int64(2 * time.Second)        // between TERM and KILL, and between KILLs
	giveUpNS  = int64(10 * time.Second)       // a process that survives KILL this long is stuck in the kernel
	listenNS  = int64(20 * time.Second)       // for a server to open its port
	lookNS    = int64(100 * time.Millisecond) // between looks at the port
	ownerNS   = int64(15 * time.Second)       // between looks at the owner
	orphanNS  = int64(10 * time.Minute)       // what a task may go on without its owner
	quietNS   = int64(100 * time.Millisecond) // between the look at the machine's state and the first sample
	drainNS   = int64(time.Second)            // for the end of the output after the end of the task
	never     = int64(1<<63 - 1)
	readBytes = 16 << 10
)

// loop is the agent's one thread while a task runs: it samples, drains the
// task's output and keeps its deadlines, all from one epoll_wait.
type loop struct {
	o    runFlags
	w    *wire.Writer
	job  *Job
	sam  *sampler
	ep   int
	wake [2]int // a byte arrives when the task's function has returned
	out  [2]output
	buf  []byte
	done chan error // what the task's function returned, there before wake
	err  error      // the same, received

	start, nextSample, deadline, stop, kill, giveUp, look, lookEnd int64

	ownerLook, orphanEnd int64  // orphanEnd is never while the owner lives
	ready                bool   // the task owned its port
	endReason            string // why the agent itself ended the task
}

func newLoop(w *wire.Writer, o runFlags) (*loop, error) {
	l := &loop{o: o, w: w, sam: newSampler(), buf: make([]byte, readBytes), done: make(chan error, 1),
		wake: [2]int{-1, -1}, out: [2]output{{fd: -1}, {fd: -1}},
		nextSample: never, deadline: never, stop: never, kill: never, giveUp: never, look: never,
		ownerLook: never, orphanEnd: never}
	l.job = &Job{spool: w, out: -1, err: -1, env: o.env, mark: markOf(o.spool), done: make(chan struct{})}
	var err error
	if l.ep, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		l.close()
		return nil, failure("epoll: " + err.Error())
	}
	var out, errs [2]int
	for _, p := range []*[2]int{&out, &errs, &l.wake} {
		if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
			l.close()
			return nil, failure("pipe: " + err.Error())
		}
	}
	l.out[0] = output{fd: out[0], typ: wire.TypeOut, name: "stdout"}
	l.out[1] = output{fd: errs[0], typ: wire.TypeErr, name: "stderr"}
	l.job.out, l.job.err = out[1], errs[1]
	for _, fd := range []int{out[0], errs[0], l.wake[0]} {
		ev := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
		if err := syscall.EpollCtl(l.ep, syscall.EPOLL_CTL_ADD, fd, &ev); err != nil {
			l.close()
			return nil, failure("epoll: " + err.Error())
		}
	}
	return l, nil
}

func (l *loop) close() {
	l.sam.close()
	for _, fd := range []*int{&l.ep, &l.wake[0], &l.wake[1], &l.out[0].fd, &l.out[1].fd, &l.job.out, &l.job.err} {
		closeFD(fd)
	}
}

func closeFD(fd *int) {
	if *fd >= 0 {
		syscall.Close(*fd)
		*fd = -1
	}
}

func after(now int64, d time.Duration) int64 {
	if d <= 0 {
		return never
	}
	return now + int64(d)
}

// run runs the task to its end and returns status and reason for the end record.
func (l *loop) run(fn Task) (status, reason string) {
	writeState(l.w)
	pause(quietNS) // or the runtime's threads, woken by that, would count as other tasks
	l.sam.sample(l.w)
	l.start = Now()
	l.nextSample = after(l.start, l.o.sample)
	l.deadline = after(l.start, l.o.deadline)
	if l.o.owner != 0 {
		l.ownerLook = l.start + ownerNS
	}
	if l.o.listen != 0 {
		l.look, l.lookEnd = l.start, l.start+listenNS
	} else {
		l.stop = after(l.start, l.o.stopAfter)
	}
	wake := l.wake[1]
	go func() {
		l.done <- fn(l.job, l.o.task[1:])
		writeAll(wake, []byte{0})
	}()
	returned := l.wait()
	if returned {
		l.err = <-l.done
	}
	l.sam.sample(l.w)
	writeState(l.w)
	if returned {
		l.sweep()
	}
	if l.sam.late > 0 {
		l.job.Note(itoa(int64(l.sam.late)) + " scheduled samples were skipped: the agent got no CPU in time")
	}
	if l.w.Full() {
		l.job.Note("the spool is full: later samples and output were dropped")
	}
	return l.verdict(returned)
}

// wait turns the loop until the task's function has returned; false when it is
// stuck in a process that cannot be killed.
func (l *loop) wait() bool {
	for {
		now := Now()
		if now >= l.giveUp {
			return false
		}
		l.due(now)
		if l.poll(l.next() - Now()) {
			return true
		}
	}
}

func (l *loop) next() int64 {
	return min(l.nextSample, l.deadline, l.stop, l.kill, l.giveUp, l.look, l.ownerLook)
}

// due does what is due at now.
func (l *loop) due(now int64) {
	if now >= l.nextSample {
		l.sam.sample(l.w)
		step := int64(l.o.sample)
		missed := (now - l.nextSample) / step
		l.sam.late += int(missed)
		l.nextSample += (missed + 1) * step
	}
	if now >= l.look {
		l.lookAtPort(now)
	}
	if now >= l.ownerLook {
		l.lookAtOwner(now)
	}
	if now >= l.deadline {
		l.deadline = never
		l.finish(now, func(j *Job) { j.timeout = true })
	}
	if now >= l.stop {
		l.stop = never
		l.finish(now, func(j *Job) { j.stopped = true })
	}
	if now >= l.kill {
		l.kill = now + graceNS
		l.job.signal(syscall.SIGKILL)
		if l.giveUp == never {
			l.giveUp = now + giveUpNS
		}
	}
}

func (l *loop) finish(now int64, mark func(*Job)) {
	if l.kill == never {
		l.kill = now + graceNS
	}
	l.look = never
	l.job.end(mark)
}

// fail ends the task for a reason of the agent's own.
func (l *loop) fail(now int64, reason string) {
	if l.endReason == "" {
		l.endReason = reason
	}
	l.finish(now, func(*Job) {})
}

// lookAtOwner ends the task when the process that started it is gone for so
// long that nobody will come to collect it.
func (l *loop) lookAtOwner(now int64) {
	l.ownerLook = now + ownerNS
	switch {
	case now >= l.orphanEnd:
		l.ownerLook = never
		l.fail(now, wire.Orphaned+" for "+time.Duration(orphanNS).String())
	case alive(l.o.owner, l.o.ownerStart):
	case l.orphanEnd == never:
		l.orphanEnd = now + orphanNS
	}
}

func (l *loop) lookAtPort(now int64) {
	l.look = now + lookNS
	owned, why := l.job.ownsPort(l.o.listen, l.o.udp)
	switch {
	case owned:
		l.look, l.ready = never, true
		l.stop = after(Now(), l.o.stopAfter)
		writeAll(1, []byte(wire.Ready)) // a closed pipe is noticed at the end
	case why != "":
		l.fail(now, why)
	case now >= l.lookEnd:
		l.fail(now, "port "+itoa(int64(l.o.listen))+" was not opened within "+time.Duration(listenNS).String())
	}
}

// poll waits up to ns for output or the end of the task and handles it.
func (l *loop) poll(ns int64) (returned bool) {
	ms := -1
	if ns < int64(time.Hour) {
		ms = int(max(0, (ns+999_999)/1_000_000))
	}
	var evs [3]syscall.EpollEvent
	n, err := syscall.EpollWait(l.ep, evs[:], ms)
	if err != nil {
		return false // EINTR
	}
	for _, ev := range evs[:n] {
		switch int(ev.Fd) {
		case l.wake[0]:
			returned = true
		case l.out[0].fd:
			l.drain(&l.out[0])
		case l.out[1].fd:
			l.drain(&l.out[1])
		}
	}
	return returned
}

func (l *loop) verdict(returned bool) (status, reason string) {
	j := l.job
	j.mu.Lock()
	timeout, stopped := j.timeout, j.stopped
	j.mu.Unlock()
	switch {
	case l.endReason != "":
		return "failed", l.endReason
	case timeout && !returned:
		return "timeout", "still running after " + l.o.deadline.String() + ", and KILL does not end it: stuck in the kernel"
	case timeout:
		return "timeout", "still running after " + l.o.deadline.String()
	case !returned:
		return "failed", "KILL does not end the task: stuck in the kernel"
	case l.err != nil:
		return "failed", l.err.Error()
	case l.o.listen != 0 && !l.ready && !stopped:
		return "failed", "the task ended before port " + itoa(int64(l.o.listen)) + " was open"
	case stopped:
		return "stopped", ""
	}
	return "ok", ""
}
