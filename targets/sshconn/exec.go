package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	// drainTime is how long output may go on after the exit status: a child left
	// in the background can hold the streams open for ever.
	drainTime = 2 * time.Second
	// endTime bounds the wait for what was closed to end.
	endTime = time.Second
	// killTimeout bounds the ending of a command.
	killTimeout = 5 * time.Second
)

// Run runs c.Argv. Besides *targets.LinkError and the context's error it
// returns the error of a Stdin, Stdout or Stderr that failed, which ends the
// command. A Stdin that blocks is left to its owner to unblock.
func (c *conn) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	line, err := commandLine(targets.WithPath(c.path, cmd.Argv))
	if err != nil {
		return targets.Exit{}, fmt.Errorf("%s: %w", c.h, err)
	}
	if cmd.Quiet {
		c.quiet.Add(1)
		defer c.quiet.Add(-1)
	}
	out := newPreamble(cmd.Stdout)
	exit, err := c.exec(ctx, line, cmd, out)
	if err == nil && exit.Signal == "" && !exit.NoStatus && out.pid.Load() == 0 {
		err = c.shellError(ctx, out)
	}
	if err != nil {
		return targets.Exit{}, err
	}
	return exit, nil
}

// exec runs one line of the login shell. Its standard output goes to out.
func (c *conn) exec(ctx context.Context, line string, cmd targets.Cmd, out *preamble) (targets.Exit, error) {
	return c.execThen(ctx, line, cmd, out, c.kill)
}

// execThen is exec with what ends a command whose time is up.
func (c *conn) execThen(ctx context.Context, line string, cmd targets.Cmd, out *preamble, end func(*session, *streams)) (targets.Exit, error) {
	s, err := c.start(ctx, "exec", ssh.Marshal(struct{ Line string }{line}))
	if errors.Is(err, errNotStarted) {
		err = &targets.LinkError{Phase: "exec", Err: fmt.Errorf("%s: the server does not run commands: %w", c.h, err)}
	}
	if err != nil {
		return targets.Exit{}, err
	}
	st := s.connect(cmd, out)
	defer st.shut()
	defer s.ch.Close()
	exit, err := c.await(ctx, s, st, end)
	if errors.Is(err, errChatty) {
		err = &targets.LinkError{Phase: "exec", Err: fmt.Errorf("%s: %w; it said %q", c.h, err, firstLine(string(out.before)))}
	}
	return exit, err
}

// await waits for the end of a command, whichever way it comes.
func (c *conn) await(ctx context.Context, s *session, st *streams, end func(*session, *streams)) (targets.Exit, error) {
	var exit *targets.Exit
	var grace <-chan time.Time
	drained, closed := st.drained, s.closed
	for {
		select {
		case <-ctx.Done():
			end(s, st)
			return targets.Exit{}, fmt.Errorf("%s: %s: %w", c.h, st.progress(exit, drained == nil), ctx.Err())
		case err := <-st.failed:
			end(s, st)
			return targets.Exit{}, err
		case e := <-s.status:
			exit = &e
			t := time.NewTimer(drainTime)
			defer t.Stop()
			grace = t.C
		case <-drained:
			drained = nil
		case <-closed:
			closed = nil
			select {
			case e := <-s.status:
				exit = &e
			default:
			}
		case <-grace:
			c.remark("the command ended, but something it left behind holds its output open; the connection to that output was cut")
			return *exit, nil
		}
		switch {
		case drained == nil && exit != nil:
			return *exit, st.firstError()
		case drained == nil && closed == nil:
			return c.withoutStatus(ctx, st)
		}
	}
}

// withoutStatus tells a lost link from a channel that the server closed
// without a word: the library reports both alike.
func (c *conn) withoutStatus(ctx context.Context, st *streams) (targets.Exit, error) {
	if err := st.firstError(); err != nil {
		return targets.Exit{}, err
	}
	if err := c.ifLost(ctx, "exec"); err != nil {
		return targets.Exit{}, err
	}
	return targets.Exit{NoStatus: true}, nil
}

// kill ends the command and all of its process group, as far as the link
// allows, and waits a little for its streams.
func (c *conn) kill(s *session, st *streams) {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	select { // the process id may still be on its way
	case <-st.out.known:
	case <-st.drained:
	case <-time.After(endTime):
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// On a dead link these block until the connection is closed.
		_, _ = s.ch.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"KILL"}))
		s.ch.Close()
		// sshd ignores signals for root, and Dropbear signals one process only.
		pid := st.out.pid.Load()
		if pid == 0 {
			return
		}
		if err := c.killPid(ctx, pid); err != nil {
			c.log.Info("could not make sure that a command has ended", zap.Int64("pid", pid), zap.Error(err))
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	select {
	case <-st.drained:
	case <-ctx.Done():
	}
}

// leave closes a session and lets the command be: it is the one that kills.
func leave(s *session, _ *streams) {
	go s.ch.Close() // on a dead link it blocks until the connection is closed
}

// killPid ends a process group over this connection, or over another one where
// the server's sessions are used up: OpenSSH counts that of the command until it
// has ended.
func (c *conn) killPid(ctx context.Context, pid int64) error {
	line, err := commandLine([]string{"/bin/sh", "-c", `kill -9 -"$1" || kill -9 "$1"`, "sh", fmt.Sprint(pid)})
	if err != nil {
		return err
	}
	first, stop := context.WithTimeout(ctx, killTimeout/3)
	_, err = c.execThen(first, line, targets.Cmd{}, newPreamble(nil), leave)
	stop()
	if err == nil || ctx.Err() != nil {
		return err
	}
	other, err := c.redial(ctx)
	if err != nil {
		return err
	}
	_, err = other.execThen(ctx, line, targets.Cmd{}, newPreamble(nil), leave)
	_ = other.Close() // it was made for this
	return err
}

// streams are the three streams of a running command.
type streams struct {
	out     *preamble
	errs    *gate
	failed  chan error    // first error of a stream's owner
	drained chan struct{} // both outputs have ended
}

// connect copies the streams, both outputs at once, so that neither can fill
// the window they share.
func (s *session) connect(cmd targets.Cmd, out *preamble) *streams {
	st := &streams{out: out, errs: newGate(cmd.Stderr), failed: make(chan error, 3), drained: make(chan struct{})}
	ended := make(chan struct{}, 2)
	pump := func(w io.Writer, g *gate, r io.Reader) {
		_, err := io.Copy(w, r) // of the gate, or errChatty: the channel only ever ends
		if g.err() != nil {
			st.failed <- g.err()
		} else if err == errChatty {
			st.failed <- err
		}
		ended <- struct{}{}
	}
	go pump(out, out.out, s.ch)
	go pump(io.MultiWriter(&out.problems, st.errs), st.errs, s.ch.Stderr())
	go func() {
		<-ended
		<-ended
		close(st.drained)
	}()
	go func() {
		defer s.ch.CloseWrite()
		if cmd.Stdin == nil {
			return
		}
		in := &source{r: cmd.Stdin}
		_, _ = io.Copy(s.ch, in) // a write fails when the command no longer reads
		if err := in.err(); err != nil {
			st.failed <- fmt.Errorf("standard input: %w", err)
		}
	}()
	return st
}

// progress says how far a command came whose time was up.
func (st *streams) progress(exit *targets.Exit, drained bool) string {
	switch {
	case exit != nil:
		return "the command ended, but its output did not"
	case drained:
		return "the command's output ended, but its exit status has not come"
	case st.out.pid.Load() == 0:
		return "the login shell has not started the command (a start-up file that waits?)"
	}
	return "the command was still running and was ended"
}

func (st *streams) firstError() error {
	select {
	case err := <-st.failed:
		return err
	default:
		return nil
	}
}

// shut keeps the outputs from being written to after Run has returned.
func (st *streams) shut() {
	st.out.out.shut()
	st.errs.shut()
}

// source keeps the error of a reader apart from that of the copy.
type source struct {
	r io.Reader

	mu     sync.Mutex
	failed error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
	}
	return n, err
}

// err is the reader's own error, nil if it has none.
func (s *source) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
