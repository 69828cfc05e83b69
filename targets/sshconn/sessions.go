package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	// openTimeout bounds the opening of a session: a server can leave it unanswered for ever.
	openTimeout = 30 * time.Second
	// refusalPause is how long a connection without any session of ours waits
	// before it asks a refusing server again.
	refusalPause = 200 * time.Millisecond
	maxRefusals  = 25
)

// errNotStarted means that the server opened a channel and refused its use.
var errNotStarted = errors.New("request refused")

// errClosedEarly means that the channel was closed before the server answered
// the request. With several sessions Dropbear 2022.83 does so now and then, for
// a command that it never starts.
var errClosedEarly = errors.New("the server closed the session before it acknowledged the command")

// session is one open channel with its request under way.
type session struct {
	ch     ssh.Channel
	status chan targets.Exit // at most one
	closed chan struct{}     // the channel is closed at both ends
}

// start opens a session and makes one request on it. A refusal for lack of
// sessions lowers the limit and waits; it is never the command's failure.
func (c *conn) start(ctx context.Context, request string, payload []byte) (*session, error) {
	for refusals := 0; ; {
		p, err := c.sessions.acquire(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: waited for one of the %d sessions that the server allows on this connection: %w", c.h, c.sessions.allowed(), err)
		}
		s, err := c.startOnce(ctx, p, request, payload)
		if err == nil {
			return s, nil
		}
		if errors.Is(err, errClosedEarly) {
			if err = c.afterEarlyClose(ctx, refusals); err == nil {
				refusals++
				continue
			}
		}
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) {
			return nil, err
		}
		limit, others := p.refused()
		c.log.Info("server refuses a further session", zap.Int("limit", limit))
		if others {
			continue
		}
		if refusals++; refusals > maxRefusals {
			return nil, &targets.LinkError{Phase: "exec", Err: fmt.Errorf(
				"%s: the server refuses every session (%s); does it forbid commands, as MaxSessions 0 does? %w", c.h, refused.Message, err)}
		}
		select {
		case <-time.After(refusalPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.lost:
			return nil, c.lostError("exec", err)
		}
	}
}

// afterEarlyClose returns nil if the request may be made again: the link lives
// and the server is one that is known not to have started the command.
func (c *conn) afterEarlyClose(ctx context.Context, attempts int) error {
	if err := c.ifLost(ctx, "exec"); err != nil {
		return err
	}
	if attempts < maxRefusals && strings.Contains(string(c.client.ServerVersion()), "dropbear") {
		return nil
	}
	return &targets.LinkError{Phase: "exec", Err: fmt.Errorf("%s: %w; whether it ran is unknown", c.h, errClosedEarly)}
}

// startOnce makes one attempt in the place p. The session gives p back when its
// channel is closed, and so does every error but a refusal.
func (c *conn) startOnce(ctx context.Context, p *place, request string, payload []byte) (*session, error) {
	type result struct {
		s   *session
		err error
	}
	var opened atomic.Bool
	silent := func() string {
		if opened.Load() {
			return "the server opened a session and did not answer the " + request + " request"
		}
		return "the server did not open a session"
	}
	done := make(chan result) // unbuffered: a result is received or abandoned, never both
	abandoned := make(chan struct{})
	go func() {
		s, err := c.openChannel(p, &opened, request, payload)
		select {
		case done <- result{s, err}:
		case <-abandoned:
			if s != nil {
				s.ch.Close()
			} else if !errors.Is(err, errNotStarted) && !errors.Is(err, errClosedEarly) {
				p.release()
			}
		}
	}()
	timer := time.NewTimer(c.opening)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.s, c.openError(p, r.err)
	case <-ctx.Done():
		close(abandoned)
		return nil, fmt.Errorf("%s: %s: %w", c.h, silent(), ctx.Err())
	case <-timer.C:
		close(abandoned)
		c.drop(fmt.Errorf("%s within %v", silent(), c.opening))
		return nil, c.lostError("exec", context.DeadlineExceeded)
	}
}

// openError sorts the errors of openChannel.
func (c *conn) openError(p *place, err error) error {
	var refused *ssh.OpenChannelError
	switch {
	case err == nil:
		c.link.settle()
		return nil
	case errors.As(err, &refused), errors.Is(err, errNotStarted), errors.Is(err, errClosedEarly):
		return err
	}
	p.release()
	return c.lostError("exec", err)
}

// openChannel opens a session channel and makes the request on it. After
// errNotStarted and errClosedEarly the channel, on closing, gives p back.
func (c *conn) openChannel(p *place, opened *atomic.Bool, request string, payload []byte) (*session, error) {
	ch, requests, err := c.client.OpenChannel("session", nil)
	if err != nil {
		return nil, err
	}
	opened.Store(true)
	s := &session{ch: ch, status: make(chan targets.Exit, 1), closed: make(chan struct{})}
	go func() {
		s.listen(requests, p.exiting)
		p.release()
	}()
	ok, err := ch.SendRequest(request, true, payload)
	if err == nil && ok {
		return s, nil
	}
	ch.Close()
	if err == io.EOF {
		return nil, errClosedEarly
	}
	return nil, fmt.Errorf("%w: %s (%v)", errNotStarted, request, err)
}

// listen takes the server's requests on the channel until it is closed; exiting
// is called once one of them tells how the command ended.
func (s *session) listen(requests <-chan *ssh.Request, exiting func()) {
	defer close(s.closed)
	told := false
	for r := range requests {
		var e targets.Exit
		known := true
		switch r.Type {
		case "exit-status":
			var m struct{ Status uint32 }
			known = ssh.Unmarshal(r.Payload, &m) == nil
			e.Code = int(m.Status)
		case "exit-signal":
			var m struct {
				Signal     string
				CoreDumped bool
				Message    string
				Language   string
			}
			known = ssh.Unmarshal(r.Payload, &m) == nil
			e.Signal = m.Signal
		default:
			known = false
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a dead link shows elsewhere
		}
		if known && !told {
			told = true
			exiting()
			s.status <- e
		}
	}
}
