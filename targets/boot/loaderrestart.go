package boot

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/targets"
)

// restarting is a restart that is under way while the console is read.
type restarting struct {
	failed context.Context // done when it has failed; its cause is why
	done   chan struct{}   // closed when it has ended
	cancel context.CancelFunc
	how    string // after done: "ssh", "power"
	err    error  // after done
}

// startRestart restarts t; try 0 by the gentlest means. end stops it.
func startRestart(ctx context.Context, t *targets.Target, try int) *restarting {
	failed, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	r := &restarting{failed: failed, done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(r.done)
		if r.how, r.err = restart(ctx, t, try); r.err != nil {
			fail(r.err)
		}
	}()
	return r
}

// end stops it where it has not ended, and waits for it.
func (r *restarting) end() {
	r.cancel()
	<-r.done
}

func (r *restarting) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait waits for its end.
func (r *restarting) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// byPower says that the machine has been without power: no old system is
// disturbed by what is typed.
func (r *restarting) byPower() bool { return r.over() && strings.HasPrefix(r.how, "power") }

// restart is the gentlest restart, and after a failed try the surest: the supply,
// or else waiting for the system that was not meant to start.
func restart(ctx context.Context, t *targets.Target, try int) (string, error) {
	if try > 0 && t.Power != nil {
		if err := targets.PowerCycle(ctx, t); err != nil {
			return "", fmt.Errorf("power cycle: %w", err)
		}
		return "power", nil
	}
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for end := time.Now().Add(t.Timeout.WithDefaults().Down); ; {
		how, err := targets.Restart(ctx, t)
		if err == nil || try == 0 || time.Now().After(end) {
			return how, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
