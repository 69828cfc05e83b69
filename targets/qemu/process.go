package qemu

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// process is one QEMU process, from start to the end of its console.
type process struct {
	program string
	pid     int
	serial  net.Conn
	qmp     *qmp
	trace   *left // for a later controller; nil: none
	stderr  tail
	cut     atomic.Bool   // we ended it
	exited  chan struct{} // closed when the process is gone; state is valid then
	state   string        // how it ended
	drained chan struct{} // closed when its last console byte was handed on
}

// startProcess starts argv with a console, QMP and an initial RAM disk on fds 3,
// 4 and 5, and hands its console to out. pkg is the Debian package to name when
// the program is missing. trace goes when the process does.
func startProcess(argv []string, pkg string, initrd *os.File, out *hub, trace *left) (_ *process, err error) {
	defer func() {
		if err != nil {
			trace.remove()
		}
	}()
	if err := canGuard(); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%w; install it with: apt-get install %s", err, pkg)
	}
	serial, serialEnd, err := socketPair("serial")
	if err != nil {
		return nil, err
	}
	defer serialEnd.Close()
	control, controlEnd, err := socketPair("qmp")
	if err != nil {
		serial.Close()
		return nil, err
	}
	defer controlEnd.Close()
	p := &process{program: argv[0], serial: serial, qmp: newQMP(control), trace: trace,
		exited: make(chan struct{}), drained: make(chan struct{})}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Stderr = &p.stderr
	cmd.ExtraFiles = []*os.File{serialEnd, controlEnd}
	if initrd != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, initrd)
	}
	// Its own group: Ctrl-C on the terminal is for kernsweep, which decides.
	cmd.SysProcAttr = endsWithUs()
	if err := p.supervise(cmd); err != nil {
		serial.Close()
		control.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	out.attach(serial)
	go p.drain(out)
	return p, nil
}

// supervise starts cmd and waits for it on a thread of its own: the death signal
// is tied to the thread that started the process, so that must live as long.
func (p *process) supervise(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
			_ = p.trace.started(p.pid) // without a number its socket still leads to it
		}
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it ended is in the state
		p.trace.remove()
		p.state = cmd.ProcessState.String()
		close(p.exited)
	}()
	return <-started
}

// drain hands the console on until the process is gone. The end of a guest that
// we did not cut off is the end of its console streams.
func (p *process) drain(out *hub) {
	defer close(p.drained)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.serial.Read(buf)
		out.deliver(buf[:n])
		if err != nil {
			break
		}
	}
	<-p.exited
	out.detach(p.serial)
	p.serial.Close()
	p.qmp.conn.Close()
	if !p.cut.Load() {
		out.end()
	}
}

func (p *process) ended() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// kill ends the process and waits until it and its console are gone.
func (p *process) kill() error {
	p.cut.Store(true)
	if !p.ended() {
		// The group is ours and not reaped yet, so the number cannot be another's.
		if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end %s (pid %d): %w", p.program, p.pid, err)
		}
	}
	t := time.NewTimer(killWait)
	defer t.Stop()
	select {
	case <-p.drained:
		return nil
	case <-t.C:
		return fmt.Errorf("%s (pid %d) did not go within %v of SIGKILL; it may wait on a device", p.program, p.pid, killWait)
	}
}

// explain adds what QEMU itself said to an error of a step.
func (p *process) explain(err error) error {
	// A process about to exit says why first; give it a moment to be gone.
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-p.exited:
		err = fmt.Errorf("%w; %s ended: %s", err, p.program, p.state)
	case <-t.C:
	}
	if said := p.stderr.String(); said != "" {
		err = fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// refusedImage reports whether QEMU ended because it can make nothing of the
// kernel's files. A file that it cannot open is not the kernel's fault.
func (p *process) refusedImage() bool {
	if !p.ended() {
		return false
	}
	said := strings.ToLower(p.stderr.String())
	if strings.Contains(said, "could not open") || strings.Contains(said, "permission denied") {
		return false
	}
	for _, w := range []string{"could not load kernel", "kernel too old", "invalid kernel", "ram disk", "initrd", "device tree", "dtb"} {
		if strings.Contains(said, w) {
			return true
		}
	}
	return false
}

// socketPair gives a connected pair: our end, and the end for the process.
func socketPair(name string) (net.Conn, *os.File, error) {
	fds, err := connected()
	if err != nil {
		return nil, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name)
	defer ours.Close()
	c, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("%s socket: %w", name, err)
	}
	return c, theirs, nil
}

// tail keeps the last 4 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if n := len(t.buf) - 4<<10; n > 0 {
		t.buf = append(t.buf[:0], t.buf[n:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.buf))
}
