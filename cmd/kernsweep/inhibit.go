package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// inhibitWait is how long the inhibitor has until it must be in force; the run
// does not wait for it.
const inhibitWait = 10 * time.Second

// sleepless keeps the machine from suspending.
type sleepless struct {
	root string // "/"
	warn func(string)
}

// hold keeps the machine awake until release is called or this process ends,
// however it does. what names the reason.
func (s sleepless) hold(what string) (release func()) {
	if !s.could() {
		return func() {}
	}
	const mayDo = "this machine may suspend in the middle of the run: "
	argv := inhibitor(what)
	tool, err := exec.LookPath(argv[0])
	if err != nil {
		s.warn(mayDo + argv[0] + " is not installed")
		return func() {}
	}
	c := exec.Command(tool, argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us
	var said lastWords
	c.Stderr = &said
	c.WaitDelay = time.Second
	in, err := c.StdinPipe() // closed by our end, also by one without a word
	if err != nil {
		s.warn(mayDo + err.Error())
		return func() {}
	}
	echo := &firstByte{came: make(chan struct{})}
	c.Stdout = echo
	if err := c.Start(); err != nil {
		s.warn(mayDo + err.Error())
		return func() {}
	}
	_, _ = io.WriteString(in, "\n") // cat answers once the inhibitor is in force
	over, stop := make(chan error, 1), make(chan struct{})
	watched := make(chan struct{})
	go func() { over <- c.Wait() }()
	go func() {
		defer close(watched)
		late := time.NewTimer(inhibitWait)
		defer late.Stop()
		for {
			select {
			case <-echo.came:
				late.Stop()
				echo = &firstByte{}
			case <-late.C:
				s.warn(mayDo + argv[0] + " does not answer")
			case err := <-over:
				s.warn(mayDo + said.because(argv[0], err))
				return
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-watched
		in.Close()
		letGo(c.Process.Pid, over)
	}
}

// letGo waits for the end of an inhibitor that was told to end, and makes sure of it.
func letGo(pid int, over <-chan error) {
	end := time.AfterFunc(time.Second, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
	defer end.Stop()
	select { // Wait has one reader
	case <-over:
	case <-time.After(3 * time.Second):
	}
}

// firstByte tells when something is written.
type firstByte struct{ came chan struct{} }

func (f *firstByte) Write(p []byte) (int, error) {
	select {
	case <-f.came:
	default:
		close(f.came)
	}
	return len(p), nil
}

// lastWords keeps the end of what a program says.
type lastWords struct{ b []byte }

func (l *lastWords) Write(p []byte) (int, error) {
	l.b = append(l.b, p...)
	if over := len(l.b) - 500; over > 0 {
		l.b = l.b[over:]
	}
	return len(p), nil
}

func (l *lastWords) because(tool string, err error) string {
	if err == nil {
		err = errors.New("it ended by itself")
	}
	if s := strings.Join(strings.Fields(string(l.b)), " "); s != "" {
		return fmt.Sprintf("%s: %s (%v)", tool, s, err)
	}
	return fmt.Sprintf("%s: %v", tool, err)
}
