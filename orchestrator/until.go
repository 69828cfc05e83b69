package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// night is a run's time: when it should be over, and what time it is. Should the
// wall clock be set meanwhile, the end is looked up on it as it is then; the
// journal says of itself that it was.
type night struct {
	until   time.Time            // zero: whenever
	wall    func() time.Time     // as people read it
	elapsed func() time.Duration // never jumps
}

func newNight(until time.Time) *night {
	start := time.Now()
	return &night{until: until.Round(0), wall: func() time.Time { return time.Now().Round(0) },
		elapsed: func() time.Duration { return time.Since(start) }}
}

// left is the time until the run should be over; ends is false when it has no
// such time.
func (n *night) left() (d time.Duration, ends bool) {
	if n.until.IsZero() {
		return 0, false
	}
	return n.until.Sub(n.wall()), true
}

// stopwatch measures by the clock that never jumps.
func (n *night) stopwatch() (took func() time.Duration) {
	start := n.elapsed()
	return func() time.Duration { return n.elapsed() - start }
}

// startable says whether the planned boot at index i may begin: the first of a
// block only when the whole block would be over in time. When it may not, the
// lane begins nothing more.
func (l *lane) startable(ctx context.Context, i int) bool {
	if l.cut != nil {
		return false
	}
	if i >= len(l.plan.Boots) {
		return true
	}
	boots := l.plan.Boots[i : i+1]
	if i == 0 || l.plan.Boots[i-1].Block != boots[0].Block {
		for j := i + 1; j < len(l.plan.Boots) && l.plan.Boots[j].Block == boots[0].Block && !l.onlyOnce(); j++ {
			boots = l.plan.Boots[i : j+1]
		}
	}
	need, last := time.Duration(0), ""
	for _, b := range boots {
		if l.skipReason(b, false) == "" {
			need, last = need+l.costs.Boot(b), b.Kernel
		}
	}
	if last == "" {
		return true // it is skipped, which takes no time
	}
	return l.inTime(ctx, need, last, boots[0].Trials)
}

// bootable says whether a boot of b, with the trials that are still to do in it,
// would be over in time.
func (l *lane) bootable(ctx context.Context, b plan.Boot, todo []results.Slot) bool {
	if _, ends := l.r.night.left(); ends { // as somebody's peer it may have to wait first
		within, end := l.helm.resume(ctx, stretch{what: "the wait for the boot of kernel " + b.Kernel, kernel: b.Kernel, waiting: true})
		if release, err := l.hold(within); err == nil {
			release()
		}
		end()
	}
	b.Trials = todo
	return l.cut == nil && l.inTime(ctx, l.costs.Boot(b), b.Kernel, todo)
}

// runnable says whether the next of the trials would be over in time.
func (s *session) runnable(ctx context.Context, todo []results.Slot) bool {
	return s.cut == nil && s.inTime(ctx, s.costs.Trial(todo[0].Cell), s.kernel, todo)
}

// turn waits for what a trial shares with others, but not beyond the time when it
// could still be over before the run should be.
func (s *session) turn(ctx context.Context, cell results.Cell, names []string) (release func(), err error) {
	left, ends := s.r.night.left()
	if !ends {
		return s.r.locks.acquire(ctx, names...)
	}
	wait, stop := context.WithTimeoutCause(ctx, max(0, left-s.costs.Trial(cell)-s.costs.Home(s.kernel)), errTooLate)
	defer stop()
	release, err = s.r.locks.acquire(wait, names...)
	if err == nil && wait.Err() != nil && ctx.Err() == nil {
		release()
		err = errTooLate
	}
	s.noTime = s.noTime || wait.Err() != nil && ctx.Err() == nil
	return release, err
}

var errTooLate = errors.New("it waited for others until it was too late to begin")

// inTime says whether what takes need, and the way home from kernel last, would be
// over in time. When not, the lane ends with a record of what it leaves out: todo,
// and the boots after it.
func (l *lane) inTime(ctx context.Context, need time.Duration, last string, todo []results.Slot) bool {
	n := l.r.night
	left, ends := n.left()
	if !ends {
		return true
	}
	need += l.costs.Home(last)
	if need <= left && !l.noTime {
		return true
	}
	rest := []plan.Boot{{Trials: todo}}
	for i, b := range l.plan.Boots {
		if b.Block == todo[0].Block && b.Kernel == todo[0].Kernel {
			rest = append(rest, l.plan.Boots[i+1:]...)
		}
	}
	l.cut = &results.Cut{Until: n.until, Block: todo[0].Block, Trials: plan.Counted(rest)}
	l.record(ctx, results.Record{Kind: results.KindCut, Cut: l.cut})
	what := fmt.Sprintf("about %s is needed and %s is left", plan.Round(need), plan.Round(max(left, 0)))
	if need <= left {
		what = fmt.Sprintf("the pause after a failure, or the wait for what others use, would not be over in the %s that are left", plan.Round(left))
	}
	l.note(ctx)(fmt.Sprintf("nothing more is begun before %s: %s; %d trials from block %d on are left out",
		n.until.Format("15:04 MST"), what, l.cut.Trials, l.cut.Block))
	return false
}
