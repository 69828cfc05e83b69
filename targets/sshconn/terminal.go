package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// Size of a terminal, in characters.
type Size struct{ Columns, Rows int }

// Terminal is the near end of a login shell.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer // a shell on a terminal says everything on Out
	// Type of the terminal ("xterm-256color"); "" = the shell gets none, as with
	// `ssh -T`.
	Type string
	Size Size
	// Resized gives each new size; nil: it stays.
	Resized <-chan Size
}

// ErrNoTerminal says that the server has no terminal to give; a shell without one
// may still be had.
var ErrNoTerminal = errors.New("the server gives no terminal")

// Shell runs the login shell of the user at link, which is a Dialer's, until it
// ends, and says how. The error is ErrNoTerminal, a *targets.LinkError, or wraps
// the context's; the shell is hung up then. An In that blocks is left to its owner
// to unblock.
func Shell(ctx context.Context, link targets.Conn, t Terminal) (targets.Exit, error) {
	c, ok := link.(*conn)
	if !ok {
		return targets.Exit{}, errors.New("this machine has no login shell: it is not reached over SSH")
	}
	s, err := c.openShell(ctx, t)
	if err != nil {
		return targets.Exit{}, err
	}
	out := newPreamble(t.Out)
	out.pid.Store(1) // what a login shell says is all its user's
	st := s.connect(targets.Cmd{Stdin: t.In, Stderr: t.Err}, out)
	defer st.shut()
	defer s.ch.Close()
	if t.Type != "" && t.Resized != nil {
		over := make(chan struct{})
		defer close(over)
		go s.follow(t.Resized, over)
	}
	return c.await(ctx, s, st, leave)
}

// openShell opens a session with a login shell, on a terminal where one is wanted.
func (c *conn) openShell(ctx context.Context, t Terminal) (*session, error) {
	if t.Type != "" {
		s, err := c.start(ctx, "pty-req", ptyRequest(t))
		if errors.Is(err, errNotStarted) {
			err = fmt.Errorf("%s: %w", c.h, ErrNoTerminal)
		}
		if err != nil {
			return nil, err
		}
		return s, c.begin(ctx, s)
	}
	s, err := c.start(ctx, "shell", nil)
	if errors.Is(err, errNotStarted) {
		err = noShell(c, err)
	}
	return s, err
}

// begin starts the login shell on a session that has its terminal.
func (c *conn) begin(ctx context.Context, s *session) error {
	answer := make(chan error, 1)
	go func() {
		ok, err := s.ch.SendRequest("shell", true, nil)
		if err == nil && !ok {
			err = errNotStarted
		}
		answer <- err
	}()
	timer := time.NewTimer(c.opening)
	defer timer.Stop()
	select {
	case err := <-answer:
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNotStarted):
			s.ch.Close()
			return noShell(c, err)
		}
		return c.lostError("exec", err)
	case <-ctx.Done():
		leave(s, nil)
		return fmt.Errorf("%s: the server did not answer the shell request: %w", c.h, ctx.Err())
	case <-timer.C:
		c.drop(fmt.Errorf("the server gave a terminal and did not answer the shell request within %v", c.opening))
		return c.lostError("exec", context.DeadlineExceeded)
	}
}

func noShell(c *conn, err error) error {
	return &targets.LinkError{Phase: "exec", Err: fmt.Errorf("%s: the server starts no login shell: %w", c.h, err)}
}

// ptyRequest is the payload of RFC 4254 section 6.2. The modes are the server's own.
func ptyRequest(t Terminal) []byte {
	return ssh.Marshal(struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}{t.Type, uint32(max(t.Size.Columns, 0)), uint32(max(t.Size.Rows, 0)), 0, 0, "\x00"})
}

// follow tells the server each new size until over is closed.
func (s *session) follow(sizes <-chan Size, over <-chan struct{}) {
	for {
		select {
		case n, ok := <-sizes:
			if !ok {
				return
			}
			// A dead link shows elsewhere.
			_, _ = s.ch.SendRequest("window-change", false, ssh.Marshal(struct{ Columns, Rows, Width, Height uint32 }{
				uint32(max(n.Columns, 0)), uint32(max(n.Rows, 0)), 0, 0}))
		case <-over:
			return
		}
	}
}
