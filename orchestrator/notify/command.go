package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	commandTime  = 30 * time.Second
	commandGrace = 2 * time.Second // from TERM to KILL
	saidMost     = 300             // characters of a command's last words, or a server's, in a message
)

// Command runs a program on the controller, with the event as JSON on its
// standard input and in KERNSWEEP_* variables.
type Command struct {
	Argv    []string      `hcl:"argv" doc:"program and arguments; it gets the event as JSON on its standard input, and KERNSWEEP_EVENT, _SUBJECT, _TEXT, _SWEEP, _RUN, _DIR, _TARGET, _KERNEL, _CAUSE, _EXIT_STATUS, _REPORT, _NEXT in its environment"`
	Timeout time.Duration `hcl:"timeout,optional" doc:"after which it is ended, with everything it started (default 30s)"`
}

// Check looks at the attributes.
func (c *Command) Check() error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("argv is empty: write the program and its arguments")
	}
	if c.Timeout < 0 {
		return errors.New("timeout is negative")
	}
	return nil
}

// Ready finds the program.
func (c *Command) Ready() error {
	_, err := exec.LookPath(c.Argv[0])
	return err
}

// Send runs the program once.
func (c *Command) Send(ctx context.Context, e Event) error {
	ctx, stop := context.WithTimeoutCause(ctx, orElse(c.Timeout, commandTime), fmt.Errorf("not over within %s", orElse(c.Timeout, commandTime)))
	defer stop()
	in, err := json.Marshal(e)
	if err != nil {
		return permanent("%w", err)
	}
	var said ending
	p := exec.Command(c.Argv[0], c.Argv[1:]...)
	p.Stdin, p.Stdout, p.Stderr = bytes.NewReader(append(in, '\n')), &said, &said
	p.Env = append(os.Environ(), environment(e)...)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.WaitDelay = commandGrace
	if err := p.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return permanent("%s: %w", c.Argv[0], err)
		}
		return fmt.Errorf("%s: %w", c.Argv[0], err)
	}
	over := make(chan error, 1)
	go func() { over <- p.Wait() }()
	select {
	case err = <-over:
		// One that reads no input, or leaves something running, did its work.
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, exec.ErrWaitDelay) {
			err = nil
		}
	case <-ctx.Done():
		end(p.Process.Pid, over)
		err = context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	if s := said.String(); s != "" {
		return fmt.Errorf("%s: %w; it said: %s", c.Argv[0], err, s)
	}
	return fmt.Errorf("%s: %w", c.Argv[0], err)
}

// end ends a process group, by KILL if need be, and waits for its leader.
func end(pid int, over <-chan error) {
	_ = syscall.Kill(-pid, syscall.SIGTERM) // not reaped yet
	grace := time.NewTimer(commandGrace)
	defer grace.Stop()
	select {
	case <-over:
		_ = syscall.Kill(-pid, syscall.SIGKILL) // whoever of the group is left
		return
	case <-grace.C:
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	<-over // at most WaitDelay
}

// environment are the event's fields for shell scripts.
func environment(e Event) []string {
	status := ""
	if e.ExitStatus != nil {
		status = strconv.Itoa(*e.ExitStatus)
	}
	var env []string
	for _, v := range [][2]string{{"EVENT", e.Kind}, {"SUBJECT", e.Subject}, {"TEXT", e.Text}, {"SWEEP", e.Sweep}, {"RUN", e.Run}, {"DIR", e.Dir},
		{"TARGET", e.Target}, {"KERNEL", e.Kernel}, {"CAUSE", e.Cause}, {"EXIT_STATUS", status}, {"REPORT", e.Report}, {"NEXT", e.Next}} {
		env = append(env, "KERNSWEEP_"+v[0]+"="+strings.ReplaceAll(v[1], "\x00", ""))
	}
	return env
}

// ending keeps the end of what a program writes.
type ending struct{ b []byte }

func (t *ending) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-4*saidMost):]...)
	t.b = t.b[max(0, len(t.b)-4*saidMost):]
	return len(p), nil
}

func (t *ending) String() string {
	s := []rune(clean(string(t.b), 4*saidMost))
	return string(s[max(0, len(s)-saidMost):])
}

func orElse(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}
