package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// outputGrace is how long a program's own children may hold its output open
// after it ended, before that is closed.
const outputGrace = 2 * time.Second

// RunProgram runs a program of the controller to its end, in a process group of
// its own, with env (KEY=value) beside the controller's environment. When ctx
// ends first the whole group is ended. The error carries the end of the output.
// A program that leaves a process behind must redirect that one's output.
func RunProgram(ctx context.Context, argv, env []string) error {
	if len(argv) == 0 {
		return errors.New("no program given")
	}
	var out tail
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Env = append(c.Environ(), env...)
	c.Stdout, c.Stderr = &out, &out
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = outputGrace
	err := c.Run()
	if ctx.Err() != nil && c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // none left is fine
	}
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return nil
	}
	if s := out.String(); s != "" {
		return fmt.Errorf("%s: %w; it said: %s", argv[0], err, s)
	}
	return fmt.Errorf("%s: %w", argv[0], err)
}

// tail keeps the last bytes written to it.
type tail struct{ b bytes.Buffer }

const tailSize = 1000

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - tailSize; over > 0 {
		t.b.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.TrimSpace(strings.ToValidUTF8(t.b.String(), "?"))
}
