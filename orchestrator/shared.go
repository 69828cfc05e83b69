package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/orchestrator/leases"
)

// shareRetry and sharePatience are for a folder of leases that cannot be written
// in the middle of a night: afterwards it goes on without.
const (
	shareRetry    = 5 * time.Second
	sharePatience = 2 * time.Minute
)

// take leases a shared name for one trial or one command; others are waited for.
// The lease is nil where nothing is shared.
func (c *Claims) take(ctx context.Context, name string) (*leases.Lease, error) {
	if c == nil {
		return nil, nil
	}
	deadline := time.NewTimer(sharePatience)
	defer deadline.Stop()
	retry := time.NewTicker(shareRetry)
	defer retry.Stop()
	wants := []leases.Want{{Key: name, What: whatShared(name)}}
	for {
		l, err := c.keeper.Take(ctx, wants, leases.Options{Wait: true, Say: func(s string) { c.once(name, s) }})
		if ctx.Err() != nil && err != nil {
			return nil, context.Cause(ctx)
		}
		if err == nil {
			return l, nil
		}
		c.once(name, err.Error())
		select {
		case <-retry.C:
		case <-deadline.C:
			c.tell(fmt.Sprintf("%s is used without a lease, so another run may use it at the same time: %v", whatShared(name), err))
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// once tells something about a shared name the first time: trials of two runs
// may wait for each other all night.
func (c *Claims) once(name, text string) {
	c.mu.Lock()
	seen := c.told[name]
	c.told[name] = true
	c.mu.Unlock()
	if !seen {
		c.tell(text)
	}
}

// whatShared names a shared thing for people: `uses "lan0"`.
func whatShared(name string) string {
	kind, rest, _ := strings.Cut(name, ":")
	switch kind {
	case "uses":
		return fmt.Sprintf("what `uses` names %q", rest)
	case "peer":
		return "the controller as a peer"
	case "strip":
		return "power strip " + rest
	}
	return name
}
