package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// outlet passes a run's output on and never keeps it waiting: a terminal that is
// stopped, a pipe that nobody reads or a reader that is gone are no reason to
// stop measuring.
type outlet struct {
	w      io.Writer
	most   int         // bytes that wait; more is left out
	failed func(error) // told once that nothing more can be shown; may be nil

	mu    sync.Mutex
	queue []byte
	busy  bool
	lost  int // writes left out since the last one that went through
	err   error
	ended bool
	wake  chan struct{} // holds one token when there is something to do
	done  chan struct{}
}

// newOutlet writes to w from a goroutine that ends with close.
func newOutlet(w io.Writer, most int) *outlet {
	o := &outlet{w: w, most: most, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go o.pass()
	return o
}

// Write never blocks and never fails.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
	case len(o.queue)+len(p) > o.most:
		o.lost++
	default:
		o.queue = append(o.queue, p...)
		o.ring()
	}
	return len(p), nil
}

func (o *outlet) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outlet) pass() {
	defer close(o.done)
	for range o.wake {
		for {
			o.mu.Lock()
			p, lost, over := o.queue, o.lost, o.ended
			o.queue, o.lost = nil, 0
			o.busy = len(p) > 0 || lost > 0
			o.mu.Unlock()
			if lost > 0 {
				p = fmt.Appendf(p, "(%d messages are not shown: nobody took them)\n", lost)
			}
			if len(p) == 0 {
				if over {
					return
				}
				break
			}
			if _, err := o.w.Write(p); err != nil {
				o.fail(err)
				return
			}
		}
	}
}

func (o *outlet) fail(err error) {
	o.mu.Lock()
	o.err, o.queue, o.busy = err, nil, false
	tell := o.failed
	o.mu.Unlock()
	if tell != nil {
		tell(err)
	}
}

// onError names who is told, at once if it has happened already.
func (o *outlet) onError(tell func(error)) {
	o.mu.Lock()
	o.failed = tell
	err := o.err
	o.mu.Unlock()
	if err != nil {
		tell(err)
	}
}

// close waits until everything is passed on, or ctx ends: then what nobody
// takes is given up.
func (o *outlet) close(ctx context.Context) {
	o.mu.Lock()
	o.ended = true
	o.ring()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done():
	}
}

// drain waits until everything so far is passed on, or ctx ends.
func (o *outlet) drain(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		o.mu.Lock()
		idle := len(o.queue) == 0 && !o.busy
		o.mu.Unlock()
		if idle {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
