package orchestrator

import (
	"context"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// Rerun is a part of a run's plan that a later session was to measure again.
type Rerun struct {
	Session int // that began it; attempts of earlier ones do not count for it
	Plan    *plan.Plan
}

// Remaining is the part of a run's plan that has no verdict yet: what was never
// begun, what was interrupted, and what a crash of the controller left open; and
// likewise of again, the newest rerun (zero: none). A lane whose end is not
// recorded stays in it even without boots: its target is still to be brought home.
func Remaining(lab *config.Lab, p *plan.Plan, m *results.Model, again Rerun) *plan.Plan {
	r := remaining{m: m, since: again.Session, again: map[results.SlotKey]bool{}}
	if again.Plan != nil {
		for _, l := range again.Plan.Lanes {
			for _, b := range l.Boots {
				for _, s := range b.Trials {
					r.again[s.Key()] = true
				}
			}
		}
	}
	out := *p
	out.Lanes = nil
	for _, l := range p.Lanes {
		state := m.Lane(l.Target)
		r.open = state != nil && state.Ended.IsZero()
		r.attempts = 1
		if t := lab.Target(l.Target); t != nil {
			r.attempts += t.Failures.Retries
		}
		n := plan.Lane{Target: l.Target}
		for _, b := range l.Boots {
			left := r.trials(b.Trials)
			if len(left) == 0 {
				continue
			}
			b.Estimate = b.Estimate * time.Duration(len(left)) / time.Duration(len(b.Trials))
			b.Trials = left
			n.Estimate += b.Estimate
			n.Boots = append(n.Boots, b)
		}
		if len(n.Boots) > 0 || r.open {
			out.Lanes = append(out.Lanes, n)
		}
	}
	return &out
}

type remaining struct {
	m        *results.Model
	again    map[results.SlotKey]bool // slots of the newest rerun …
	since    int                      // … and the session that began it
	open     bool                     // the lane was cut off
	attempts int                      // that a lost link leaves a trial
}

// trials are those without a verdict, each cell's with its warm-ups.
func (r *remaining) trials(slots []results.Slot) []results.Slot {
	due := map[results.Cell]bool{}
	for _, s := range slots {
		if !s.Warmup() && r.due(s) {
			due[s.Cell] = true
		}
	}
	var out []results.Slot
	for _, s := range slots {
		if due[s.Cell] && (s.Warmup() || r.due(s)) {
			out = append(out, s)
		}
	}
	return out
}

func (r *remaining) due(s results.Slot) bool {
	t := r.m.Slot(s)
	if t == nil {
		return true
	}
	if r.again[s.Key()] {
		t = t.Since(r.since)
	}
	if t == nil || !t.Settled() {
		return true
	}
	f := t.Final() // in a lane that was cut off a lost link may still have its other attempt
	return r.open && f.Outcome == results.Lost && tried(t) < r.attempts
}

// tried counts the attempts that were really made.
func tried(t *results.Trial) int {
	n := 0
	for _, a := range t.Attempts {
		if a.Outcome == results.Lost {
			n++
		}
	}
	return n
}

// legacy is what the controller before this one left to a lane.
type legacy struct {
	open   bool          // the lane's end is not recorded
	boot   *results.Boot // the target may still be in it; nil: no such boot
	failed *results.Boot // its newest boot failed; its trials may lack their verdicts
	newest *results.Boot // its newest boot was proven; nil: it was not
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
	if h.newest = h.boot; !h.open {
		h.boot, h.failed = nil, nil
	}
	l.before = h
	l.touched = h.open && !h.since.Equal(before.Began)
}

// known is the machine of a target's first proven boot in the run, nil when there
// is none. Another one under the same address must not go on with its figures.
func known(m *results.Model, target string) *targets.Identity {
	for _, b := range m.Boots {
		if b.Lane == target && b.Result != nil && b.Result.Outcome == results.OK && b.Result.Record.Identity != nil {
			return b.Result.Record.Identity
		}
	}
	return nil
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

// spare lists the spools that belong to trials a resumed run may still take over.
// Several targets may be one machine, so those of all lanes are spared on each.
func (r *Runner) spare() []string {
	if !r.Resume {
		return nil
	}
	r.settledMu.Lock()
	defer r.settledMu.Unlock()
	var spools []string
	for _, t := range r.Before.Trials {
		for _, a := range t.Attempts {
			if a.Judged() || r.settled[t.Slot.Target] {
				continue
			}
			for _, x := range a.Tasks {
				spools = append(spools, x.Spool)
			}
		}
	}
	return spools
}

// settle says that a lane has taken over what it could: what is left of its
// trials is no longer spared.
func (l *lane) settle() {
	l.r.settledMu.Lock()
	defer l.r.settledMu.Unlock()
	if l.r.settled == nil {
		l.r.settled = map[string]bool{}
	}
	l.r.settled[l.conf.Name] = true
}

// sweepController ends what killed controllers left running on this machine, the
// other ends of their network workloads.
func (r *Runner) sweepController(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, cleanupTime)
	defer stop()
	note := func(s string) { _ = r.append(ctx, results.Record{Kind: results.KindNote, Note: "controller: " + s}) }
	err := deploy.EndLeftovers(ctx, r.Local, deploy.Options{Instance: deploy.Instance(), Spare: r.spare(), Log: r.Log, Note: note})
	if err != nil && ctx.Err() == nil {
		note("what earlier controllers left there could not be looked for: " + err.Error())
	}
}
