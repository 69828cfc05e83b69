package orchestrator

import (
	"context"
	"fmt"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// pauseLook is how often a paused lane looks whether it is too late to go on.
const pauseLook = time.Minute

// idle waits while the lane is paused: until it goes on, is given up or
// interrupted, or until what takes need, and the way home from kernel, could not
// be over in time any more. block is the one that the pause splits, 0 where none
// is under way. It says whether it waited.
func (l *lane) idle(ctx context.Context, block int, need time.Duration, kernel string) (waited bool) {
	p, change := l.helm.halted()
	if p == nil {
		return false
	}
	took := l.r.night.stopwatch()
	for p != nil && ctx.Err() == nil {
		left, ends := l.r.night.left()
		if left -= need + l.costs.Home(kernel); ends && left < 0 {
			l.note(ctx)("it is paused, and what is left would not be over in time any more")
			return true
		}
		wait := pauseLook
		if ends {
			wait = min(wait, left+time.Millisecond)
		}
		look := time.NewTimer(wait)
		select {
		case <-change:
		case <-look.C:
		case <-ctx.Done():
		}
		look.Stop()
		p, change = l.helm.halted()
	}
	if ctx.Err() == nil && block > 0 {
		l.note(ctx)(fmt.Sprintf("block %d was split by a pause of %s", block, took().Round(time.Second)))
	}
	return true
}

// splits is the number of the block that a pause before the planned boot at index
// i splits, 0 when it begins a block.
func (l *lane) splits(i int) int {
	if b := l.plan.Boots[i].Block; i > 0 && l.plan.Boots[i-1].Block == b {
		return b
	}
	return 0
}

// heed withdraws a target that was given up by hand.
func (l *lane) heed() {
	if why := l.helm.givenUp(); why != "" && l.withdrawn == "" {
		l.withdrawn, l.byHand = why, true
	}
}

// tryBoot is start within reach of people's hands. begun is false when the lane was
// paused, or the kernel left out, before the boot began. by is why a person ended it.
func (l *lane) tryBoot(ctx context.Context, b plan.Boot) (s *session, begun bool, by string, err error) {
	within, end, ok := l.helm.begin(ctx, stretch{what: "the boot of kernel " + b.Kernel, kernel: b.Kernel, waiting: true})
	if !ok {
		return nil, false, "", nil
	}
	defer end()
	before := l.boots
	s, err = l.start(within, b)
	return s, l.boots > before, byHand(within), err
}

// abandoned brings back a target whose boot a person ended: nobody is to blame.
func (l *lane) abandoned(ctx context.Context, b plan.Boot, by string) {
	if l.heed(); l.withdrawn == "" { // else it is brought home at once, as the lane ends
		l.recover(ctx, l.knownGood(), fmt.Sprintf("boot %d (kernel %s), %s", l.boots, b.Kernel, by))
	}
}

// patient waits for d within reach of people's hands.
func (l *lane) patient(ctx context.Context, kernel string, d time.Duration) {
	ctx, end := l.helm.resume(ctx, stretch{what: "a pause after a failure", kernel: kernel})
	defer end()
	rest(ctx, d)
}

// steady says whether the link of a boot, unused for a while or just cut, still
// leads to it; if need be over another one.
func (s *session) steady(ctx context.Context) bool {
	check, stop := context.WithTimeout(ctx, 2*s.target.Timeout.WithDefaults().Exec)
	defer stop()
	if targets.Recheck(check, s.target.Held, s.record) == nil {
		return true
	}
	return s.back(ctx)
}

// steadied is steady, and brings a target back that does not answer. Nobody is
// blamed for that.
func (s *session) steadied(ctx context.Context, after string) bool {
	if s.heed(); s.withdrawn != "" || ctx.Err() != nil || s.steady(ctx) {
		return true
	}
	s.recover(ctx, targets.Kernel{}, after)
	return false
}

// heeded does what people asked before the first of todo begins, and returns what
// is still to be done. goesOn is false when the boot is not to be gone on with.
func (s *session) heeded(ctx context.Context, todo []results.Slot) (left []results.Slot, goesOn bool) {
	slot := todo[0]
	if s.idle(ctx, slot.Block, s.costs.Trial(slot.Cell), s.kernel) && !s.steadied(ctx, "a pause") {
		return todo, false
	}
	if s.heed(); ctx.Err() != nil {
		return todo, true
	}
	if why := s.helm.leftOut(s.kernel); why != "" {
		s.conclude(ctx, todo, results.Skipped, why)
		return nil, false
	}
	if why := s.helm.skipsNext(); why != "" {
		s.conclude(ctx, todo[:1], results.Skipped, why)
		return todo[1:], true
	}
	return todo, true
}

// stretchOf is a slot's trial, which waits for what others use.
func stretchOf(slot results.Slot) stretch {
	name := fmt.Sprintf("trial %s %s.%s #%d", slot.Kernel, slot.Workload, slot.Scenario, slot.Repeat)
	if slot.Warmup() {
		name = fmt.Sprintf("warm-up %s %s.%s", slot.Kernel, slot.Workload, slot.Scenario)
	}
	return stretch{what: name, kernel: slot.Kernel, trial: true, waiting: true}
}
