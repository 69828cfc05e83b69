package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// Times from the end of a run's context, by Ctrl-C or by a journal that cannot be
// written: all is over within 30 s, whatever the targets do.
const (
	leaveBudget = 18 * time.Second // for what lanes put in order, together
	leaveGrace  = 4 * time.Second  // more, for what heeds no context; then a lane is left behind
	peerTime    = 2 * time.Second  // to remove our files from the controller itself
)

// ending is where a lane is on its way out.
type ending struct {
	over chan struct{} // closed when the lane is

	mu   sync.Mutex
	home chan struct{} // nil: its target is not being brought home; closed when that is over
}

// await waits for the lanes, and says which ones do not come to an end after the
// run was interrupted. Only bringing a target home takes as long as it takes.
func (r *Runner) await(ctx context.Context) (stuck []string) {
	for _, l := range r.lanes {
		select {
		case <-l.ending.over:
		case <-ctx.Done():
		}
	}
	if ctx.Err() == nil {
		return nil
	}
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), leaveBudget+leaveGrace)
	defer stop()
	if r.unfinished(ctx, limit) {
		var more func()
		limit, more = context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
		defer more()
	}
	for _, l := range r.lanes {
		if !l.ending.wait(limit) {
			stuck = append(stuck, l.conf.Name)
		}
	}
	return stuck
}

// unfinished waits for what must not be cut off, at the time when everything else
// is given up, and says whether there was something.
func (r *Runner) unfinished(ctx, limit context.Context) bool {
	for _, l := range r.lanes {
		select {
		case <-l.ending.over:
		case <-limit.Done():
		}
	}
	some := false
	for done := targets.Unfinished(ctx); done != nil; done = targets.Unfinished(ctx) {
		if !some {
			_ = r.append(ctx, results.Record{Kind: results.KindNote, Note: "waiting for a write of flash that must not be cut off; Ctrl-C again leaves it to itself"})
		}
		some = true
		<-done // at most the time that it was given
	}
	return some
}

// wait says whether the lane comes to an end, in time or after it has brought
// its target home.
func (e *ending) wait(limit context.Context) bool {
	select {
	case <-e.over:
		return true
	case <-limit.Done():
	}
	e.mu.Lock()
	home := e.home
	e.mu.Unlock()
	if home == nil {
		return false
	}
	select {
	case <-e.over:
		return true
	case <-home:
	}
	last := time.NewTimer(cleanupTime + leaveGrace)
	defer last.Stop()
	select {
	case <-e.over:
		return true
	case <-last.C:
		return false
	}
}

// returning says that the target is being brought home until done is called.
func (e *ending) returning() (done func()) {
	home := make(chan struct{})
	e.mu.Lock()
	e.home = home
	e.mu.Unlock()
	return func() { close(home) }
}

// leftBehind closes the journal to lanes that do not come to an end, and says so.
func (r *Runner) leftBehind(ctx context.Context, stuck []string) {
	if len(stuck) == 0 {
		return
	}
	for _, name := range stuck {
		_ = r.append(ctx, results.Record{Kind: results.KindNote, Lane: name, Note: fmt.Sprintf(
			"its lane did not come to an end within %s of the interruption and is left as it is: kernsweep resume puts it in order", leaveBudget+leaveGrace)})
	}
	r.watching.Lock()
	defer r.watching.Unlock()
	r.stuck = stuck
}

// fenced says that a record comes from a lane that was left behind.
func (r *Runner) fenced(rec results.Record) bool {
	r.watching.Lock()
	defer r.watching.Unlock()
	return rec.Lane != "" && slices.Contains(r.stuck, rec.Lane)
}

// goHome brings the target to rest at the end of its lane. On its known-good
// kernel it must be left, also after Ctrl-C; where it has none, what is left of
// the budget decides.
func (l *lane) goHome(ctx context.Context, k targets.Kernel) error {
	if k.Name == "" {
		back, stop := targets.Afterwards(ctx, l.leaveTime())
		defer stop()
		return l.home(back, k)
	}
	defer l.ending.returning()()
	unhook := context.AfterFunc(ctx, func() {
		l.note(ctx)(fmt.Sprintf("bringing %s back to its known-good kernel %s, at most %s; Ctrl-C again leaves it where it is",
			l.conf.Name, k.Name, strings.TrimSuffix(l.leaveTime().Round(time.Minute).String(), "0s")))
	})
	defer unhook()
	back, stop := context.WithTimeout(targets.WithoutBudget(context.WithoutCancel(ctx)), l.leaveTime())
	defer stop()
	return l.home(back, k)
}
