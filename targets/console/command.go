package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"kernsweep/targets"
)

// Command is a program of the controller whose standard input and output are
// the console: conserver's console, ipmitool sol, virsh console, picocom.
type Command struct {
	Command []string `hcl:"command" doc:"program and arguments; its stdin and stdout are the console, stderr joins stdout"`
}

// Check refuses a block without a program.
func (c *Command) Check() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("command names no program")
	}
	return nil
}

// Programs are those that the block names.
func (c *Command) Programs(*targets.Target) []string { return c.Command[:1] }

// Open starts the program; it lives until Close, or until it ends.
func (c *Command) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close() // the program has its own
	p := &program{cmd: exec.Command(c.Command[0], c.Command[1:]...), out: r, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.in, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		_ = r.Close() // nothing was read
		return nil, fmt.Errorf("console program: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// program is a running console program.
type program struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	done chan struct{} // closed when it has ended
	err  error         // then: how
}

// closeGrace is given to a program to end by itself: some must tell a server
// that the console is free again.
const closeGrace = 2 * time.Second

// Read returns what the program printed. At its end the error wraps io.EOF and
// says how it ended.
func (p *program) Read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, io.EOF) {
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-p.done:
			if p.err != nil {
				err = fmt.Errorf("%s ended (%v): %w", p.cmd.Path, p.err, io.EOF)
			}
		case <-t.C: // it closed its output and goes on
		}
	}
	return n, err
}

func (p *program) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close ends the program's process group: TERM, then KILL.
func (p *program) Close() error {
	_ = p.in.Close() // it may have ended
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what is left of the group
	<-p.done
	return p.out.Close()
}
