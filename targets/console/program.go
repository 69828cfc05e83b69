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
)

// program is a running console program.
type program struct {
	cmd     *exec.Cmd
	in, out *os.File // one and the same where it has a terminal
	keys    []byte   // that make it send a break
	early   []byte   // said while it was opened and not read yet
	done    chan struct{}
	err     error // once done is closed: how it ended
}

// closeGrace is given to a program to end by itself: some must tell a server
// that the console is free again.
const closeGrace = 2 * time.Second

// startPiped starts a program between two pipes, in a process group of its own.
func startPiped(argv []string) (*program, error) {
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, out.Close(), childOut.Close())
	}
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), in: in, out: out, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = childIn, childOut, childOut
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = p.cmd.Start()
	_, _ = childIn.Close(), childOut.Close() // the program has its own
	if err != nil {
		_, _ = in.Close(), out.Close() // nothing was written or read
		return nil, err
	}
	go p.wait()
	return p, nil
}

// startOnPTY starts a program on a terminal of its own. The terminal is raw from
// the start, so that nothing is echoed, edited or turned into a signal on its
// way, also before the program sets it.
func startOnPTY(argv []string) (*program, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer slave.Close() // the program has its own
	p := &program{cmd: exec.Command(argv[0], argv[1:]...), in: master, out: master, done: make(chan struct{})}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = p.cmd.Start()
	if err != nil {
		_ = master.Close() // nothing was read
		return nil, err
	}
	go p.wait()
	return p, nil
}

func (p *program) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// Read returns what the program printed. At its end the error wraps io.EOF and
// says how it ended.
func (p *program) Read(b []byte) (int, error) {
	if len(p.early) > 0 {
		n := copy(b, p.early)
		p.early = p.early[n:]
		return n, nil
	}
	return p.read(b)
}

func (p *program) read(b []byte) (int, error) {
	n, err := p.out.Read(b)
	if errors.Is(err, syscall.EIO) { // a terminal whose last user is gone
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		t := time.NewTimer(closeGrace)
		defer t.Stop()
		select {
		case <-p.done:
			how := "with status 0"
			if p.err != nil {
				how = p.err.Error()
			}
			err = fmt.Errorf("%s ended (%s): %w", p.cmd.Path, how, io.EOF)
		case <-t.C: // it closed its output and goes on
		}
	}
	return n, err
}

func (p *program) Write(b []byte) (int, error) {
	_ = p.in.SetWriteDeadline(time.Now().Add(writeTime)) // pipes and terminals have deadlines
	n, err := p.in.Write(b)
	return n, stuck(err)
}

// Break types what makes the program send one.
func (p *program) Break(context.Context) error {
	if len(p.keys) == 0 {
		return errors.New(`this console's block has no "break" attribute that says how its program sends one`)
	}
	_, err := p.Write(p.keys)
	return err
}

// Close ends a waiting read and the program's process group: TERM, then KILL.
func (p *program) Close() error {
	_ = p.out.SetReadDeadline(time.Unix(1, 0)) // it may be closed
	if p.in != p.out {
		_ = p.in.Close() // it may have ended
	}
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
