package sshconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	// drainTime is how long output may stand still after the exit status: a child
	// left in the background can hold the streams open for ever. What is on its way
	// comes in the meantime, over a slow link or to a slow disk; it is at most what
	// the windows of both streams and the pipes hold.
	drainTime  = 2 * time.Second
	drainMost  = 2 * time.Minute
	drainBytes = 8 << 20
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
	var after *drain
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
			after = st.drain()
			t := time.NewTicker(drainTime)
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
			if after.goesOn() {
				continue
			}
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
	wait := killTimeout
	if st.out.pid.Load() == 0 {
		wait = endTime // nothing of ours runs there
	}
	select {
	case <-st.drained:
	case <-ctx.Done():
	case <-time.After(wait):
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
