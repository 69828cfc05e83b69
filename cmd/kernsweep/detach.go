package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/orchestrator/results"
)

// detachedVar tells a detached controller that it is one, and on which
// descriptor its parent waits for the word that nobody is needed any more.
const detachedVar = "KERNSWEEP_DETACHED"

const outputFile = "output.log" // of a detached controller, in its run directory

// detached is a controller that survives its terminal; nil: it is not one.
type detached struct {
	parent *os.File // open until the run is on its way
}

// asDetached says whether this process was started as a detached controller. It
// is asked once, before anything else is started: children must not think so.
func asDetached() *detached {
	fd, err := strconv.Atoi(os.Getenv(detachedVar))
	os.Unsetenv(detachedVar)
	if err != nil || fd < 3 {
		return nil
	}
	unix.CloseOnExec(fd)
	return &detached{parent: os.NewFile(uintptr(fd), "parent")}
}

// away lets the parent go: from here on everything that is written goes to the
// run's output.log, and no descriptor of the parent's terminal is open.
func (d *detached) away(run *results.Run) error {
	f, err := os.OpenFile(filepath.Join(run.Dir(), outputFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err == nil {
		fmt.Fprintf(f, "--- process %d, %s\n", os.Getpid(), time.Now().Format(time.RFC3339))
	} else if null, e := os.OpenFile(os.DevNull, os.O_WRONLY, 0); e != nil {
		return errors.Join(err, e)
	} else {
		f = null
	}
	defer f.Close()
	for _, fd := range []int{1, 2} { // a crash of ours is written there too
		if e := dupTo(int(f.Fd()), fd); e != nil {
			return fmt.Errorf("%s: %w", f.Name(), e)
		}
	}
	_, e := io.WriteString(d.parent, "away\n")
	if errors.Is(e, syscall.EPIPE) {
		e = nil // the terminal was faster
	}
	return errors.Join(err, e, d.parent.Close())
}

// detach starts this command line once more, in a session of its own, shows what
// it says, and returns its exit status, or 0 once it needs nobody any more.
func (a *app) detach(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	argv := a.survive(append([]string{self}, a.args...))
	word, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer word.Close()
	if err := keepToOurselves(); err != nil {
		theirs.Close()
		return err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), detachedVar+"=3")
	c.ExtraFiles = []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.StdoutPipe()
	said, e := c.StderrPipe()
	if err = errors.Join(err, e); err == nil {
		err = c.Start()
	}
	theirs.Close()
	if err != nil {
		return fmt.Errorf("a detached controller: %w", err)
	}
	defer keepPipes()()
	shown := make(chan struct{}, 2)
	for r, w := range map[io.Reader]io.Writer{out: rawOutput(a.out), said: a.err} {
		go func() {
			_, _ = io.Copy(w, r)          // ends when the controller has let go, or is gone
			_, _ = io.Copy(io.Discard, r) // it must not wait for a terminal that was closed
			shown <- struct{}{}
		}()
	}
	a.signals.passTo(func(sig os.Signal) {
		if sig != syscall.SIGHUP {
			_ = c.Process.Signal(sig) // one that is gone needs none
		}
	})
	if ctx.Err() != nil {
		_ = c.Process.Signal(os.Interrupt)
	}
	s, _ := bufio.NewReader(word).ReadString('\n')
	<-shown
	<-shown
	if s == "away\n" {
		return c.Process.Release()
	}
	err = c.Wait()
	if code := c.ProcessState.ExitCode(); code > 0 {
		return &statusError{status: code}
	} else if code == 0 {
		return nil
	}
	return fmt.Errorf("the detached controller ended at once: %w", err)
}

// keepToOurselves marks what this process inherited as not to be passed on: a
// terminal that a detached controller holds open keeps its window from closing.
func keepToOurselves() error {
	names, err := os.ReadDir(openFiles)
	if err != nil {
		return fmt.Errorf("which files are open: %w", err)
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
