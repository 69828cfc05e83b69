package agent

import (
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// probe is the parsed command line of latency, and the probe while it runs.
type probe struct {
	j                      *Job
	periodMin, periodMax   time.Duration
	duration               time.Duration // 0 with untilLoad
	untilLoad              bool
	place, work            string
	jobs, samples          int
	command                []string
	waker, sleeper         *Process
	wakerOut, sleeperOut   int // read ends of the results
	control                int // write end; closing it ends the waker
	fromWaker, fromSleeper result
}

// result is what a process of the probe wrote; valid once done is closed.
type result struct {
	done  chan struct{}
	bytes []byte
}

// mostSamples bounds the memory of the probe: 24 + 16 bytes each.
const mostSamples = 1 << 16

// latencyTask measures wakeup latency while a load runs, or none:
// latency -period-min D -period-max D (-duration D | -until-load) [-place free|same|other]
// [-load N] [-work UNITS] [-- ARGV…]
func latencyTask(j *Job, args []string) error {
	p, err := parseProbe(args)
	if err != nil {
		return err
	}
	p.j = j
	if err := p.start(); err != nil {
		return err
	}
	l := newLoad(j, p.jobs, p.work, p.command, !p.untilLoad)
	if err = l.start(); err == nil {
		syscall.Write(p.control, []byte{1})
		p.wait(l)
	}
	syscall.Close(p.control)
	if e := l.end(); err == nil {
		err = e
	}
	if e := p.collect(); err == nil {
		err = e
	}
	return err
}

func parseProbe(args []string) (*probe, error) {
	p := &probe{place: "free", work: "1000"}
	if i := indexOf(args, "-until-load"); i >= 0 {
		p.untilLoad = true
		args = append(append([]string(nil), args[:i]...), args[i+1:]...)
	}
	low, high, duration, jobs := "", "", "0s", "0"
	rest, err := taskOptions(args, map[string]*string{"-period-min": &low, "-period-max": &high,
		"-duration": &duration, "-place": &p.place, "-load": &jobs, "-work": &p.work})
	if err != nil {
		return nil, err
	}
	var errs [4]error
	p.periodMin, errs[0] = positive(low)
	p.periodMax, errs[1] = positive(high)
	p.duration, errs[2] = positive(duration)
	p.jobs, errs[3] = strconv.Atoi(jobs)
	p.command = rest
	for _, e := range errs {
		if e != nil {
			return nil, failure("latency: " + e.Error())
		}
	}
	switch {
	case p.periodMin <= 0 || p.periodMax < p.periodMin:
		return nil, failure("latency: periods must be above 0, the largest not below the smallest")
	case p.untilLoad == (p.duration > 0):
		return nil, failure("latency: give either -duration or -until-load")
	case p.jobs < 0 || p.jobs == 0 && (p.untilLoad || len(p.command) > 0):
		return nil, failure("latency: a load needs -load with at least 1")
	case p.place != "free" && p.place != "same" && p.place != "other":
		return nil, failure("latency: -place must be free, same or other")
	}
	p.samples = mostSamples
	if n := int64(p.duration/p.periodMin) + 2; p.duration > 0 && n < mostSamples {
		p.samples = int(n)
	}
	return p, nil
}

// indexOf finds an option before "--", -1 when it is not there.
func indexOf(args []string, name string) int {
	for i, a := range args {
		if a == "--" {
			break
		}
		if a == name {
			return i
		}
	}
	return -1
}

// start starts both processes and waits until they are ready.
func (p *probe) start() error {
	wakerCPU, sleeperCPU := int64(-1), int64(-1)
	if p.place != "free" {
		cpus := allowedCPUs()
		if len(cpus) == 0 || p.place == "other" && len(cpus) < 2 {
			return failure("latency: -place " + p.place + " needs more CPUs than there are")
		}
		wakerCPU, sleeperCPU = cpus[0], cpus[0]
		if p.place == "other" {
			sleeperCPU = cpus[1]
		}
	}
	var fds [4][2]int
	for i := range fds {
		if err := syscall.Pipe2(fds[i][:], syscall.O_CLOEXEC); err != nil {
			return failure("pipe: " + err.Error())
		}
	}
	pipe, fromWaker, fromSleeper, control := fds[0], fds[1], fds[2], fds[3]
	p.wakerOut, p.sleeperOut, p.control = fromWaker[0], fromSleeper[0], control[1]
	n := itoa(int64(p.samples))
	var err, err2 error
	p.sleeper, err = p.j.Start(Proc{Name: "sleeper", Self: true, Env: quietRuntime(), Fds: []int{pipe[0], fromSleeper[1]},
		Argv: []string{"sleeper", n, itoa(sleeperCPU)}})
	p.waker, err2 = p.j.Start(Proc{Name: "waker", Self: true, Env: quietRuntime(), Fds: []int{pipe[1], fromWaker[1], control[0]},
		Argv: []string{"waker", n, itoa(int64(p.periodMin)), itoa(int64(p.periodMax)), itoa(int64(p.duration)), "20090907", itoa(wakerCPU)}})
	for _, fd := range []int{pipe[0], pipe[1], fromWaker[1], fromSleeper[1], control[0]} {
		syscall.Close(fd)
	}
	if err == nil {
		err = err2
	}
	b := make([]byte, 1)
	for _, fd := range []int{p.wakerOut, p.sleeperOut} {
		if n, _ := syscall.Read(fd, b); n != 1 && err == nil {
			err = failure("latency: the probe did not start; its reason is on stderr")
		}
	}
	if err != nil {
		p.drop()
	}
	return err
}

// drop gives up a probe that did not start.
func (p *probe) drop() {
	for _, fd := range []int{p.control, p.wakerOut, p.sleeperOut} {
		syscall.Close(fd)
	}
	for _, pr := range []*Process{p.waker, p.sleeper} {
		if pr != nil {
			pr.Wait()
		}
	}
}

// wait waits for what ends the measurement.
func (p *probe) wait(l *load) {
	p.fromWaker.read(p.wakerOut)
	p.fromSleeper.read(p.sleeperOut)
	over, full := make(chan struct{}), p.fromWaker.done
	if p.untilLoad {
		full = nil // the load's own time counts, whatever becomes of the probe
		go func() { l.over.Wait(); close(over) }()
	}
	select {
	case <-over:
	case <-full:
	case <-l.failed:
	case <-p.j.Done():
	}
}

// read reads fd to its end, and closes it.
func (r *result) read(fd int) {
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		defer syscall.Close(fd)
		b := make([]byte, 64<<10)
		for {
			n, err := syscall.Read(fd, b)
			if err == syscall.EINTR {
				continue
			}
			if n <= 0 {
				return
			}
			r.bytes = append(r.bytes, b[:n]...)
		}
	}()
}

// collect waits for both processes and spools what they measured.
func (p *probe) collect() error {
	if p.fromWaker.done == nil { // never begun
		p.fromWaker.read(p.wakerOut)
		p.fromSleeper.read(p.sleeperOut)
	}
	<-p.fromWaker.done
	<-p.fromSleeper.done
	for _, pr := range []*Process{p.waker, p.sleeper} {
		if err := Failed(pr.Wait()); err != nil {
			return err
		}
	}
	b := p.fromWaker.bytes
	if len(b) < 16 {
		return nil // ended by the agent, or never begun
	}
	head := unsafe.Slice((*int64)(unsafe.Pointer(&b[0])), 2)
	p.j.Value("skipped_periods", itoa(head[0]), "count")
	p.j.Value("probe_end", itoa(head[1]), "ns")
	n := min((len(b)-16)/int(unsafe.Sizeof(woke{})), len(p.fromSleeper.bytes)/int(unsafe.Sizeof(ran{})))
	if n == 0 {
		return nil
	}
	if n == mostSamples {
		p.j.Note("the probe stopped after " + itoa(mostSamples) + " wakeups: its memory was full")
	}
	return p.points(unsafe.Slice((*woke)(unsafe.Pointer(&b[16])), n), unsafe.Slice((*ran)(unsafe.Pointer(&p.fromSleeper.bytes[0])), n))
}

// points spools the wakeups, some hundred to a record: intended_ns
// waker_late_ns latency_ns cpu_waker cpu_sleeper.
func (p *probe) points(w []woke, r []ran) error {
	var b []byte
	for i := range w {
		for k, v := range [5]int64{w[i].intended, w[i].late, r[i].latency, w[i].cpu, r[i].cpu} {
			if k > 0 {
				b = append(b, ' ')
			}
			b = strconv.AppendInt(b, v, 10)
		}
		b = append(b, '\n')
		if len(b) > 24<<10 || i == len(w)-1 {
			if err := p.j.Points("wakeup", b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	return nil
}
