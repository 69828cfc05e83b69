package sshconn

import (
	"context"
	"sync"
	"time"
)

const (
	// freshTime is how long a careful limiter keeps others away from a new session.
	freshTime = 300 * time.Millisecond
	// A limit that was learnt may be too low: the server may have counted a session
	// that we had just seen end. Who waits for a place tries one more after
	// raiseFirst, and after each refusal half as often, down to raiseLast.
	raiseFirst = 500 * time.Millisecond
	raiseLast  = 8 * time.Second
)

// limiter hands out places for sessions. Its limit sinks to what the server
// turns out to allow.
//
// Dropbear 2022.83 closes a session, or even fails an assertion and drops the
// connection, when another's command ends between the opening of the session
// and its request. A careful limiter therefore lets short commands run one
// after another, and keeps new sessions away from those that are ending.
type limiter struct {
	careful bool

	mu    sync.Mutex
	most  int // as configured
	limit int
	pause time.Duration // until one more is tried
	used  int
	fresh int
	ended int           // command over, channel not yet closed
	wake  chan struct{} // closed whenever a place may have become free
}

// place is the right to one session.
type place struct {
	l     *limiter
	timer *time.Timer // nil once the session is no longer fresh
	ended bool
}

func newLimiter(limit int, careful bool) *limiter {
	return &limiter{most: limit, limit: limit, pause: raiseFirst, careful: careful, wake: make(chan struct{})}
}

func (l *limiter) acquire(ctx context.Context) (*place, error) {
	for {
		l.mu.Lock()
		if l.used < l.limit && (!l.careful || l.fresh+l.ended == 0) {
			l.used++
			p := &place{l: l}
			if l.careful {
				l.fresh++
				p.timer = time.AfterFunc(freshTime, p.aged)
			}
			l.mu.Unlock()
			return p, nil
		}
		wake := l.wake
		timer := time.NewTimer(l.pause)
		l.mu.Unlock()
		select {
		case <-wake:
		case <-timer.C:
			l.raise()
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		timer.Stop()
	}
}

// raise lets one more session be tried than the server last allowed.
func (l *limiter) raise() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used >= l.limit && l.limit < l.most {
		l.limit++
	}
}

// allowed is the limit now.
func (l *limiter) allowed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// aged ends a session's youth.
func (p *place) aged() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.settle()
	p.l.signal()
}

// settle is aged for those who hold the lock.
func (p *place) settle() {
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
		p.l.fresh--
	}
}

// exiting says that the session's command has ended and its channel has not.
func (p *place) exiting() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if !p.ended {
		p.ended = true
		p.l.ended++
	}
}

// release gives the place back.
func (p *place) release() {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.free()
}

// refused gives back a place that the server did not grant, lowers the limit
// to what is open, and returns it with whether anything of ours is open.
func (p *place) refused() (limit int, others bool) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	p.free()
	p.l.limit = max(1, min(p.l.limit, p.l.used))
	p.l.pause = min(2*p.l.pause, raiseLast)
	return p.l.limit, p.l.used > 0
}

func (p *place) free() {
	p.settle()
	p.l.used--
	if p.ended {
		p.l.ended--
	}
	p.l.signal()
}

func (l *limiter) signal() {
	close(l.wake)
	l.wake = make(chan struct{})
}
