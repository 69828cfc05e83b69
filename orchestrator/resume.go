package orchestrator

import (
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// Remaining is the part of a run's plan that has no verdict yet: what was never
// begun, what was interrupted, and what a crash of the controller left open. A
// lane whose end is not recorded stays in it even without boots: its target is
// still to be brought home.
func Remaining(p *plan.Plan, m *results.Model) *plan.Plan {
	out := *p
	out.Lanes = nil
	for _, l := range p.Lanes {
		state := m.Lane(l.Target)
		open := state != nil && state.Ended.IsZero()
		n := plan.Lane{Target: l.Target}
		for _, b := range l.Boots {
			left := remainingTrials(b.Trials, m, open)
			if len(left) == 0 {
				continue
			}
			b.Estimate = b.Estimate * time.Duration(len(left)) / time.Duration(len(b.Trials))
			b.Trials = left
			n.Estimate += b.Estimate
			n.Boots = append(n.Boots, b)
		}
		if len(n.Boots) > 0 || open {
			out.Lanes = append(out.Lanes, n)
		}
	}
	return &out
}

// remainingTrials are those without a verdict, each cell's with its warm-ups.
func remainingTrials(slots []results.Slot, m *results.Model, open bool) []results.Slot {
	unsettled := map[results.Cell]bool{}
	for _, s := range slots {
		if !s.Warmup() && !settled(m.Slot(s), open) {
			unsettled[s.Cell] = true
		}
	}
	var out []results.Slot
	for _, s := range slots {
		if unsettled[s.Cell] && (s.Warmup() || !settled(m.Slot(s), open)) {
			out = append(out, s)
		}
	}
	return out
}

// settled says that nothing more is to be done for a slot. In a lane that was cut
// off a lost link may still have its other attempt.
func settled(t *results.Trial, open bool) bool {
	if t == nil || !t.Settled() {
		return false
	}
	f := t.Final()
	return !open || f.Outcome != results.Lost || f.Number >= lostAttempts
}

// legacy is what the controller before this one left to a lane.
type legacy struct {
	open   bool          // the lane's end is not recorded
	boot   *results.Boot // the target may still be in it; nil: no such boot
	failed *results.Boot // its newest boot failed; its trials may lack their verdicts
	since  time.Time     // of the newest thing that is known of the lane
	knobs  []results.KnobChange
}

// inherit makes a lane go on where the controller before it stopped.
func (l *lane) inherit() {
	m := l.r.Before
	before := m.Lane(l.conf.Name)
	if before == nil {
		return
	}
	h := &legacy{open: before.Ended.IsZero(), knobs: before.Owed(), since: before.Began}
	for _, b := range m.Boots {
		if b.Lane != l.conf.Name {
			continue
		}
		h.boot, h.failed, h.since = nil, nil, b.Asked
		if b.Result == nil {
			continue
		}
		switch b.Result.Outcome {
		case results.OK:
			l.lastID, l.verified = b.Result.Record.BootID, true
			h.boot, h.since = b.Result, b.Judged
		case results.BootFailed:
			h.failed = b.Result
		}
	}
	if !h.open {
		h.boot, h.failed = nil, nil
	}
	l.before = h
	l.touched = h.open && !h.since.Equal(before.Began)
}

// concluded gives the trials of a boot their verdict when the controller stopped
// between the verdict on the boot and those on its trials.
func (l *lane) concluded(b plan.Boot) (why string, ok bool) {
	h := l.before
	if h == nil || h.failed == nil || h.failed.Kernel != b.Kernel || h.failed.Block != b.Block {
		return "", false
	}
	why = h.failed.Stage + ": " + h.failed.Reason
	l.before.failed = nil
	return why, true
}
