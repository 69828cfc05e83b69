package agent

import (
	"strings"
	"sync"
	"syscall"
	"time"
)

// load is what runs beside the probe: processes in sessions of their own, so
// that autogroup scheduling does not put them and the probe into one group.
type load struct {
	j     *Job
	procs []Proc
	loop  bool // start each one again when it ends

	mu     sync.Mutex
	now    []*Process
	ending bool
	err    error
	over   sync.WaitGroup
	failed chan struct{} // closed with the first failure
}

// newLoad is n processes of argv, or one when an argument holds {jobs}, which
// becomes n; without argv, n float programs of units of work.
func newLoad(j *Job, n int, units string, argv []string, loop bool) *load {
	l := &load{j: j, loop: loop, failed: make(chan struct{})}
	p := Proc{Name: "load", Self: true, Argv: []string{"session"}}
	if len(argv) == 0 {
		p.Env = quietRuntime()
		p.Argv = append(p.Argv, selfPath(), "child", "crunch", "LTMM", units, itoa(minKB))
	}
	once := false
	for _, a := range argv {
		b := strings.ReplaceAll(a, "{jobs}", itoa(int64(n)))
		once = once || a != b
		p.Argv = append(p.Argv, b)
	}
	if once {
		n = min(n, 1)
	}
	for range n {
		l.procs = append(l.procs, p)
	}
	l.now = make([]*Process, n)
	return l
}

// start starts all; it returns the first failure to do so.
func (l *load) start() error {
	for i := range l.procs {
		if more, err := l.next(i, true); !more {
			return err
		}
		l.over.Add(1)
		go l.keep(i)
	}
	return nil
}

// next starts process i, again when it is not the first time and the load is a loop.
func (l *load) next(i int, first bool) (started bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.j.Done():
		return false, nil
	default:
	}
	if l.ending || !first && !l.loop {
		return false, nil
	}
	p, err := l.j.Start(l.procs[i])
	if err != nil {
		return false, err
	}
	l.now[i] = p
	return true, nil
}

// keep waits for process i and starts it again for as long as it may.
func (l *load) keep(i int) {
	defer l.over.Done()
	for more := true; more; {
		l.mu.Lock()
		p := l.now[i]
		l.mu.Unlock()
		err := Failed(p.Wait())
		if err == nil {
			more, err = l.next(i, false)
		}
		if err != nil {
			l.fail(err)
			return
		}
	}
}

func (l *load) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.ending {
		l.err = err
		close(l.failed)
	}
}

// end stops what still runs, whole sessions, and returns the first failure.
func (l *load) end() error {
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if l.signal(s) == 0 {
			break
		}
		all := make(chan struct{})
		go func() { l.over.Wait(); close(all) }()
		grace := time.NewTimer(2 * time.Second)
		select {
		case <-all:
		case <-grace.C:
		}
		grace.Stop()
	}
	l.over.Wait()
	return l.err
}

// signal signals the sessions that still have their leader.
func (l *load) signal(s syscall.Signal) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.now {
		if p == nil {
			continue
		}
		select {
		case <-p.Done():
		default:
			n++
			syscall.Kill(-p.PID, s)
			syscall.Kill(p.PID, s) // it may not lead its session yet
		}
	}
	return n
}

// sessionChild becomes a session of its own and then another program: ARGV…
func sessionChild(args []string) int {
	if _, err := syscall.Setsid(); err != nil {
		return childFailed("setsid: " + err.Error())
	}
	path, argv, err := resolve(Proc{Argv: args})
	if err != nil {
		return childFailed(err.Error())
	}
	err = syscall.Exec(path, argv, syscall.Environ())
	childFailed(args[0] + ": cannot be started: " + err.Error())
	return 127
}
