package sshconn

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// limiter hands out sessions. Its limit sinks to what the server turns out to allow.
type limiter struct {
	mu    sync.Mutex
	limit int
	used  int
	wake  chan struct{} // closed whenever a place may have become free
}

func newLimiter(limit int) *limiter { return &limiter{limit: limit, wake: make(chan struct{})} }

func (l *limiter) acquire(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.used < l.limit {
			l.used++
			l.mu.Unlock()
			return nil
		}
		wake := l.wake
		l.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *limiter) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	close(l.wake)
	l.wake = make(chan struct{})
}

// refused gives a place back that the server did not grant, and returns the new
// limit and whether others of ours are open.
func (l *limiter) refused() (limit int, others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	l.limit = max(1, min(l.limit, l.used))
	close(l.wake)
	l.wake = make(chan struct{})
	return l.limit, l.used > 0
}

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
		if err := c.sessions.acquire(ctx); err != nil {
			return nil, err
		}
		s, err := c.startOnce(ctx, request, payload)
		if err == nil {
			return s, nil
		}
		var refused *ssh.OpenChannelError
		if !errors.As(err, &refused) {
			return nil, err
		}
		limit, others := c.sessions.refused()
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

// startOnce makes one attempt. The caller holds a place in the limiter; the
// session gives it back when its channel is closed, and so does every error
// but a refusal.
func (c *conn) startOnce(ctx context.Context, request string, payload []byte) (*session, error) {
	type result struct {
		s   *session
		err error
	}
	done := make(chan result) // unbuffered: a result is received or abandoned, never both
	abandoned := make(chan struct{})
	go func() {
		s, err := c.openChannel(request, payload)
		select {
		case done <- result{s, err}:
		case <-abandoned:
			if s != nil {
				s.ch.Close()
			} else if !errors.Is(err, errNotStarted) {
				c.sessions.release()
			}
		}
	}()
	timer := time.NewTimer(openTimeout)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.s, c.openError(r.err)
	case <-ctx.Done():
		close(abandoned)
		return nil, ctx.Err()
	case <-timer.C:
		close(abandoned)
		c.setCause(fmt.Errorf("the server did not open a session within %v", openTimeout))
		c.link.Close()
		return nil, c.lostError("exec", context.DeadlineExceeded)
	}
}

// openError sorts the errors of openChannel.
func (c *conn) openError(err error) error {
	var refused *ssh.OpenChannelError
	switch {
	case err == nil:
		c.link.settle()
		return nil
	case errors.As(err, &refused), errors.Is(err, errNotStarted):
		return err
	}
	c.sessions.release()
	return c.lostError("exec", err)
}

// openChannel opens a session channel and makes the request on it. After
// errNotStarted the channel, on closing, gives back the place in the limiter.
func (c *conn) openChannel(request string, payload []byte) (*session, error) {
	ch, requests, err := c.client.OpenChannel("session", nil)
	if err != nil {
		return nil, err
	}
	s := &session{ch: ch, status: make(chan targets.Exit, 1), closed: make(chan struct{})}
	go func() {
		s.listen(requests)
		c.sessions.release()
	}()
	ok, err := ch.SendRequest(request, true, payload)
	if err == nil && ok {
		return s, nil
	}
	ch.Close()
	return nil, fmt.Errorf("%w: %s (%v)", errNotStarted, request, err)
}

// listen takes the server's requests on the channel until it is closed.
func (s *session) listen(requests <-chan *ssh.Request) {
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
			s.status <- e
		}
	}
}
