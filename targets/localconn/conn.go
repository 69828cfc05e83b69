// Package localconn is targets.Conn for the controller itself, which can be the
// peer of a network workload: commands are its own child processes.
package localconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/targets"
)

// drainTime is how long output may go on after the end of a command.
const drainTime = 2 * time.Second

var errClosed = errors.New("the connection was closed by kernsweep")

// New returns a Conn to this machine. Close ends the commands still running.
func New() targets.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{ctx: ctx, cancel: cancel}
}

type conn struct {
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	mu      sync.Mutex // orders the start of commands before Close
	running sync.WaitGroup
}

// begin counts a use that Close waits for.
func (c *conn) begin(phase string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return &targets.LinkError{Phase: phase, Err: fmt.Errorf("controller: %w", errClosed)}
	}
	c.running.Add(1)
	return nil
}

// Run runs cmd in a process group of its own, which ends with ctx. Besides the
// context's error it returns the error of a Stdin, Stdout or Stderr that failed.
func (c *conn) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return targets.Exit{}, errors.New("controller: no command given")
	}
	for i, a := range cmd.Argv {
		if strings.IndexByte(a, 0) >= 0 {
			return targets.Exit{}, fmt.Errorf("controller: word %d of the command holds a NUL byte, which no program can receive", i)
		}
	}
	if err := c.begin("exec"); err != nil {
		return targets.Exit{}, err
	}
	defer c.running.Done()
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.ctx, func() { cancel(errClosed) })
	defer stop()
	return c.run(ctx, limited, cancel, cmd)
}

func (c *conn) run(ctx, limited context.Context, cancel context.CancelCauseFunc, cmd targets.Cmd) (targets.Exit, error) {
	p := exec.CommandContext(limited, cmd.Argv[0], cmd.Argv[1:]...)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.Cancel = func() error { return syscall.Kill(-p.Process.Pid, syscall.SIGKILL) }
	p.WaitDelay = drainTime
	p.Stdout, p.Stderr = &output{cmd.Stdout, cancel}, &output{cmd.Stderr, cancel}
	if cmd.Stdin != nil {
		p.Stdin = &input{cmd.Stdin, cancel}
	}
	err := p.Start()
	if err != nil {
		return notStarted(p, cmd, err)
	}
	err = p.Wait()
	var broken *streamError
	switch {
	case errors.As(context.Cause(limited), &broken):
		return targets.Exit{}, broken.err
	case ctx.Err() != nil:
		return targets.Exit{}, ctx.Err()
	case limited.Err() != nil:
		return targets.Exit{}, &targets.LinkError{Phase: "exec", Err: fmt.Errorf("controller: %w", errClosed)}
	case p.ProcessState == nil:
		return targets.Exit{}, &targets.LinkError{Phase: "exec", Err: fmt.Errorf("controller: %s: %w", cmd.Argv[0], err)}
	}
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return targets.Exit{Signal: strings.TrimPrefix(unix.SignalName(status.Signal()), "SIG")}, nil
	}
	return targets.Exit{Code: p.ProcessState.ExitCode()}, nil
}

// notStarted answers as a shell would: 127 for a program that is not there,
// 126 for one that cannot be run.
func notStarted(p *exec.Cmd, cmd targets.Cmd, err error) (targets.Exit, error) {
	code := 0
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		code = 127
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC), errors.Is(err, syscall.EISDIR):
		code = 126
	default:
		return targets.Exit{}, &targets.LinkError{Phase: "exec", Err: fmt.Errorf("controller: %w", err)}
	}
	if _, err := fmt.Fprintf(p.Stderr, "%s: %v\n", cmd.Argv[0], err); err != nil {
		return targets.Exit{}, err
	}
	return targets.Exit{Code: code}, nil
}

// streamError carries the error of a stream's owner through a context's cause.
type streamError struct{ err error }

func (e *streamError) Error() string { return e.err.Error() }

// output ends the command when its writer fails.
type output struct {
	w      io.Writer
	cancel context.CancelCauseFunc
}

func (o *output) Write(p []byte) (int, error) {
	if o.w == nil {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	if err != nil {
		o.cancel(&streamError{err})
	}
	return n, err
}

// input ends the command when its reader fails.
type input struct {
	r      io.Reader
	cancel context.CancelCauseFunc
}

func (i *input) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if err != nil && err != io.EOF {
		i.cancel(&streamError{fmt.Errorf("standard input: %w", err)})
	}
	return n, err
}

// Put writes r to path by a temporary file and a rename.
func (c *conn) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) (err error) {
	if err := c.begin("transfer"); err != nil {
		return err
	}
	defer c.running.Done()
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".kernsweep-")
	if err != nil {
		return fmt.Errorf("controller: put %s: %w", path, err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
			err = fmt.Errorf("controller: put %s: %w", path, err)
		}
	}()
	if _, err := io.Copy(f, untilDone{ctx, r}); err != nil {
		return err
	}
	if err := f.Chmod(mode.Perm()); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Get copies the file at path to w.
func (c *conn) Get(ctx context.Context, path string, w io.Writer) error {
	if err := c.begin("transfer"); err != nil {
		return err
	}
	defer c.running.Done()
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("controller: get: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(w, untilDone{ctx, f}); err != nil {
		return fmt.Errorf("controller: get %s: %w", path, err)
	}
	return nil
}

// untilDone is a reader that ends with a context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// Close ends the commands still running and waits for them.
func (c *conn) Close() error {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
	return nil
}
