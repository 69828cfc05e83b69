package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"kernsweep/targets"
)

// Command is a program of the controller whose standard input and output are
// the console: conserver's console, ipmitool sol, virsh console, picocom.
type Command struct {
	Command []string `hcl:"command" doc:"program and arguments; its stdin and stdout are the console, stderr joins stdout"`
	PTY     bool     `hcl:"pty,optional" doc:"give the program a terminal, in raw mode: some refuse to work without (virsh console, ipmitool sol)"`
	Break   string   `hcl:"break,optional" doc:"what makes the program send a break, ^E for Ctrl-E: \"^Ecl0\" for conserver, \"~B\" for ipmitool"`
}

// Check refuses a block without a program.
func (c *Command) Check() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("command names no program")
	}
	_, err := caret(c.Break)
	return err
}

// Programs are those that the block names.
func (c *Command) Programs(*targets.Target) []string { return c.Command[:1] }

// Open starts the program and listens to it a moment: one that ends at once is
// an error with its words in it. It lives until Close, or until it ends.
func (c *Command) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	return openProgram(ctx, c.Command, c.PTY, c.Break, helloTime)
}

// openProgram starts a console program.
func openProgram(ctx context.Context, argv []string, withPTY bool, breakKeys string, hello time.Duration) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	keys, err := caret(breakKeys)
	if err != nil {
		return nil, err
	}
	start := startPiped
	if withPTY {
		start = startOnPTY
	}
	p, err := start(argv)
	if err != nil {
		return nil, fmt.Errorf("console program: %w", err)
	}
	p.keys = keys
	if err := p.listen(ctx, hello); err != nil {
		_ = p.Close() // the first error is the one that matters
		return nil, err
	}
	return p, nil
}

// listen keeps what the program says at first; its end is an error.
func (p *program) listen(ctx context.Context, d time.Duration) error {
	undo := waitRead(ctx, p.out, d)
	defer undo()
	buf := make([]byte, 4096)
	for len(p.early) < maxEarly {
		n, err := p.read(buf)
		p.early = append(p.early, buf[:n]...)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		default:
			return fmt.Errorf("console program: %w; it said: %.300q", err, p.early)
		}
	}
	return nil
}
