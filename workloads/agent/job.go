package agent

import (
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"kernsweep/workloads/wire"
)

// failure is an error text; errors.New would do, but this one compares by value.
type failure string

func (f failure) Error() string { return string(f) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Job is one running task: its processes, which share one process group, and
// what it writes to the spool. Its methods are safe for concurrent use.
type Job struct {
	spool    *wire.Writer
	out, err int // write ends of the pipes that become stdout and stderr
	env      []string
	mark     string // TaskVariable=…, in every process's environment
	done     chan struct{}

	mu      sync.Mutex
	groups  []int // process groups of the task, the newest last
	live    int
	stopped bool // by -stop-after
	timeout bool // by -deadline
	ended   bool // done is closed
}

// Process is a started process of a task.
type Process struct {
	PID  int
	done chan struct{}
	task wire.Task
}

// Now is CLOCK_MONOTONIC in nanoseconds, the same in all processes of a machine.
// The runtime's own reading is the one that needs no allocation and no 64-bit
// care on 32-bit kernels; it is kept stable for its many users.
func Now() int64 { return nanotime() }

//go:linkname nanotime runtime.nanotime
func nanotime() int64

var _ unsafe.Pointer // linkname asks for the import

// Start starts a process in the task's group. Its task record is written as
// soon as it has ended. The error names the command.
func (j *Job) Start(p Proc) (*Process, error) {
	path, argv, err := resolve(p)
	if err != nil {
		return nil, err
	}
	name := p.Name
	if name == "" {
		name = base(argv[0])
	}
	null, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, failure("/dev/null: " + err.Error())
	}
	defer syscall.Close(null)
	files := []uintptr{uintptr(null), uintptr(j.out), uintptr(j.err)}
	for _, fd := range p.Fds {
		files = append(files, uintptr(fd))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return nil, failure(name + ": not started, the task is over")
	}
	group := 0 // a new one: the old group may be gone with its last process
	if j.live > 0 {
		group = j.groups[len(j.groups)-1]
	}
	attr := &syscall.ProcAttr{
		Env:   environ(syscall.Environ(), []string{"LC_ALL=C"}, j.env, p.Env, []string{j.mark}),
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pgid: group},
	}
	start := Now()
	pid, err := syscall.ForkExec(path, argv, attr)
	if err == syscall.EPERM && group != 0 {
		// All that was left of the group went to sessions of their own.
		attr.Sys.Pgid, group = 0, 0
		start = Now()
		pid, err = syscall.ForkExec(path, argv, attr)
	}
	if err != nil {
		return nil, failure(argv[0] + ": cannot be started: " + err.Error())
	}
	if group == 0 {
		j.groups = append(j.groups, pid)
	}
	j.live++
	pr := &Process{PID: pid, done: make(chan struct{}), task: wire.Task{Name: name, PID: pid, StartNS: start}}
	go j.reap(pr)
	return pr, nil
}

func (j *Job) reap(p *Process) {
	var ws syscall.WaitStatus
	var ru syscall.Rusage
	var err error
	for {
		if _, err = syscall.Wait4(p.PID, &ws, 0, &ru); err != syscall.EINTR {
			break
		}
	}
	t := &p.task
	t.EndNS = Now()
	if ws.Signaled() {
		t.Exit, t.Signal = -1, int(ws.Signal())
	} else {
		t.Exit = ws.ExitStatus()
	}
	t.UserUS = int64(ru.Utime.Sec)*1e6 + int64(ru.Utime.Usec)
	t.SystemUS = int64(ru.Stime.Sec)*1e6 + int64(ru.Stime.Usec)
	t.Voluntary, t.Involuntary, t.MaxRSSKB = int64(ru.Nvcsw), int64(ru.Nivcsw), int64(ru.Maxrss)
	j.mu.Lock()
	j.live--
	t.Stopped, t.TimedOut = j.stopped, j.timeout
	j.mu.Unlock()
	if err != nil {
		j.Note(t.Name + ": wait4: " + err.Error())
	}
	j.spool.Write(wire.TypeTask, t.EndNS, t.Name, wire.AppendTask(nil, *t))
	close(p.done)
}

// Wait waits until the process has ended.
func (p *Process) Wait() wire.Task {
	<-p.done
	return p.task
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Done is closed when the agent ends the task: its time is over.
func (j *Job) Done() <-chan struct{} { return j.done }

// Value writes a value record; v is a decimal number as text.
func (j *Job) Value(name, v, unit string) {
	j.spool.Write(wire.TypeValue, Now(), name, []byte("value="+v+"\nunit="+unit+"\n"))
}

// Points writes part of a series: lines of whitespace-separated integers.
// It returns wire.ErrFull when the spool has no room for it.
func (j *Job) Points(name string, lines []byte) error {
	return j.spool.Write(wire.TypePoints, Now(), name, lines)
}

// Note writes free text for people.
func (j *Job) Note(text string) {
	j.spool.Write(wire.TypeNote, Now(), "", []byte(text))
}

func resolve(p Proc) (path string, argv []string, err error) {
	if len(p.Argv) == 0 {
		return "", nil, failure("no command given")
	}
	if p.Self {
		return selfPath(), append([]string{"kernsweep-agent", "child"}, p.Argv...), nil
	}
	if strings.Contains(p.Argv[0], "/") {
		return p.Argv[0], p.Argv, nil
	}
	for _, dir := range strings.Split(getenv("PATH"), ":") {
		f := dir + "/" + p.Argv[0]
		var st syscall.Stat_t
		if syscall.Stat(f, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0 {
			return f, p.Argv, nil
		}
	}
	return "", nil, failure(p.Argv[0] + ": not found in PATH (" + getenv("PATH") + ")")
}

// environ joins environments; of equal keys the last one counts. Numbers and
// messages of tools must not depend on the machine's language.
func environ(lists ...[]string) []string {
	var env []string
	for _, l := range lists {
		for _, e := range l {
			key, _, _ := strings.Cut(e, "=")
			kept := env[:0]
			for _, old := range env {
				if !strings.HasPrefix(old, key+"=") {
					kept = append(kept, old)
				}
			}
			env = append(kept, e)
		}
	}
	return env
}

// selfPath is this program. Under a user-mode emulator the kernel cannot run
// /proc/self/exe: there KERNSWEEP_AGENT names a script that can.
func selfPath() string {
	if p := getenv("KERNSWEEP_AGENT"); p != "" {
		return p
	}
	return "/proc/self/exe"
}

func base(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
