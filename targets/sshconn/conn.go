package sshconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	defaultKeepalive = 15 * time.Second
	mayMiss          = 3 // intervals without an answer that end a connection
	defaultSessions  = 10
	pingTimeout      = 5 * time.Second
)

var errClosed = errors.New("the connection was closed by kernsweep")

// conn is one logged-in connection.
type conn struct {
	log     *zap.Logger
	client  *ssh.Client
	link    *link
	way     way
	blamed  sync.Once
	broken  int // jump host at fault, with why
	why     error
	h       host
	path    string        // before PATH
	opening time.Duration // for the opening of a session
	note    func(string)
	redial  func(context.Context) (*conn, error) // another connection to the machine
	noteMu  sync.Mutex                           // a note is taken one at a time

	sessions *limiter
	quiet    atomic.Int32  // quiet commands running
	stop     chan struct{} // closed by Close
	lost     chan struct{} // closed when the link is gone
	stopOnce sync.Once
	wg       sync.WaitGroup

	mu     sync.Mutex
	cause  error         // why the link is gone
	noSFTP string        // why there is no SFTP, "" while there may be
	rtt    time.Duration // 0 until measured
}

func newConn(d *Dialer, client *ssh.Client, l *link, w way, h host, s targets.SSH, o targets.DialOptions) *conn {
	c := &conn{
		log: d.log.With(zap.String("machine", h.String())), client: client, link: l, way: w, h: h, path: s.Path, note: o.Note,
		opening: d.opening, redial: func(ctx context.Context) (*conn, error) { return d.dial(ctx, s, targets.DialOptions{}) },
		stop: make(chan struct{}), lost: make(chan struct{}),
	}
	limit := s.Sessions
	if limit <= 0 {
		limit = defaultSessions
	}
	c.sessions = newLimiter(limit, strings.Contains(string(client.ServerVersion()), "dropbear"))
	interval := s.Keepalive
	if interval <= 0 {
		interval = defaultKeepalive
	}
	c.wg.Add(2)
	go c.watch()
	go c.keepAlive(interval)
	return c
}

// watch waits for the end of the link and keeps its cause.
func (c *conn) watch() {
	defer c.wg.Done()
	err := c.client.Wait()
	c.setCause(err)
	close(c.lost)
	c.link.Close()
}

func (c *conn) setCause(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil && err != nil {
		c.cause = err
	}
}

// Close ends the connection, the commands running over it, and its jump hosts.
func (c *conn) Close() error {
	c.stopOnce.Do(func() {
		c.setCause(errClosed)
		close(c.stop)
		c.client.Close()
		c.link.Close()
		c.way.close()
	})
	c.wg.Wait()
	return nil
}

// keepAlive asks for a sign of life once per interval and ends the connection
// when none came for mayMiss intervals. It pauses while quiet commands run.
func (c *conn) keepAlive(interval time.Duration) {
	defer c.wg.Done()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	alive := time.Now()
	answers := make(chan bool, 1)
	asking := false
	for {
		select {
		case <-c.stop:
			return
		case <-c.lost:
			return
		case ok := <-answers:
			asking = false
			if ok {
				alive = time.Now()
			}
			continue
		case <-tick.C:
		}
		if c.quiet.Load() > 0 {
			alive = time.Now()
			continue
		}
		if silent := time.Since(alive); silent >= mayMiss*interval-interval/2 {
			c.drop(fmt.Errorf("no answer to %d keepalives in %v: it crashed, was switched off, or the network broke", mayMiss, silent.Round(time.Millisecond)))
			c.log.Warn("link lost: keepalives unanswered", zap.Duration("silent", silent))
			return
		}
		if !asking {
			asking = true
			go func() { answers <- ask(c.client) == nil }()
		}
	}
}

// ask sends a request that every server answers, be it by a refusal.
func ask(client *ssh.Client) error {
	_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
	return err
}

// ping is ask with a deadline.
func (c *conn) ping(ctx context.Context) error { return ping(ctx, c.client) }

func ping(ctx context.Context, client *ssh.Client) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- ask(client) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// roundTrip is the time of one round trip, measured once.
func (c *conn) roundTrip(ctx context.Context) (time.Duration, error) {
	c.mu.Lock()
	rtt := c.rtt
	c.mu.Unlock()
	if rtt > 0 {
		return rtt, nil
	}
	start := time.Now()
	if err := c.ping(ctx); err != nil {
		return 0, err
	}
	rtt = time.Since(start)
	c.mu.Lock()
	c.rtt = rtt
	c.mu.Unlock()
	return rtt, nil
}

// ifLost is nil while the server answers; otherwise it ends the link, and is ctx's
// error or a *targets.LinkError of phase.
func (c *conn) ifLost(ctx context.Context, phase string) error {
	err := c.ping(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	c.drop(err)
	return c.lostError(phase, err)
}

// drop gives the link up for cause.
func (c *conn) drop(cause error) {
	c.setCause(cause)
	c.blame()
	c.link.Close()
	c.way.cut() // over a jump host that hangs, closing the link alone ends nothing
}

// blame finds out, once, whether a jump host is at fault, as long as they are
// there to be asked.
func (c *conn) blame() {
	c.blamed.Do(func() { c.broken, c.why = c.way.broken() })
}

// lostError is the *targets.LinkError of a link found dead in phase.
func (c *conn) lostError(phase string, seen error) error {
	select {
	case <-c.lost:
	case <-time.After(pingTimeout): // the link died under the library, which must notice
	}
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	if cause == nil {
		cause = seen
	}
	if errors.Is(cause, errClosed) {
		return &targets.LinkError{Phase: phase, Err: fmt.Errorf("%s: %w", c.h, cause)}
	}
	if c.blame(); c.why != nil {
		return &targets.LinkError{Phase: phase, Hop: c.way[c.broken].h.String(), Err: fmt.Errorf("%s: connection lost: %w", c.h, c.why)}
	}
	return &targets.LinkError{Phase: phase, Err: fmt.Errorf(
		"%s: connection lost: the machine went down, the network broke, or the server process of this connection was killed: %w", c.h, cause)}
}

// remark tells the journal and the log.
func (c *conn) remark(text string) {
	c.log.Warn(text)
	if c.note != nil {
		c.noteMu.Lock()
		defer c.noteMu.Unlock()
		c.note(c.h.String() + ": " + text)
	}
}
