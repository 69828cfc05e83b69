// Package live turns journal records into progress: plain lines where there is
// no terminal, a few lines that redraw themselves where there is one.
package live

import (
	"time"

	"kernsweep/orchestrator/results"
)

// Lane is what was planned for one target.
type Lane struct {
	Name     string
	Boots    int
	Trials   int
	Estimate time.Duration // of the whole lane
}

// Tracker follows a run through its records. It is not safe for concurrent use.
type Tracker struct {
	began time.Time
	order []string
	lanes map[string]*laneState
}

type laneState struct {
	Lane
	boots, trials int
	phase         string
	kernel        string
	doing         string
	outcomes      map[results.Outcome]int
	over          bool
	seen          map[results.SlotKey]bool
}

// NewTracker starts at began.
func NewTracker(began time.Time, lanes []Lane) *Tracker {
	t := &Tracker{began: began, lanes: map[string]*laneState{}}
	for _, l := range lanes {
		t.order = append(t.order, l.Name)
		t.lanes[l.Name] = &laneState{Lane: l, outcomes: map[results.Outcome]int{}, seen: map[results.SlotKey]bool{}, doing: "waiting"}
	}
	return t
}

// Observe takes one record in.
func (t *Tracker) Observe(rec results.Record) {
	l := t.lanes[rec.Lane]
	if l == nil {
		return
	}
	switch rec.Kind {
	case results.KindPhase:
		l.kernel, l.phase = rec.Boot.Kernel, string(rec.Phase)
		l.doing = "boot " + l.phase
	case results.KindBoot:
		l.boots++
		l.kernel, l.doing = rec.Boot.Kernel, "booted"
		if rec.Outcome != results.OK {
			l.doing = string(rec.Outcome)
		}
	case results.KindStarted:
		l.doing = rec.Slot.Workload + "." + rec.Slot.Scenario
	case results.KindJudged:
		if k := rec.Slot.Key(); !l.seen[k] {
			l.seen[k] = true
			l.trials++
		}
		l.outcomes[rec.Outcome]++
	case results.KindLane:
		if rec.Note != "began" {
			l.over, l.doing = true, rec.Note
		}
	}
}

// Left estimates the time to the end at now: each lane's planned time, scaled by
// how it kept to it so far; the longest decides. ok is false before anything
// can be said.
func (t *Tracker) Left(now time.Time) (left time.Duration, ok bool) {
	elapsed := now.Sub(t.began)
	for _, l := range t.lanes {
		if l.over || l.Trials == 0 {
			continue
		}
		done := float64(l.trials) / float64(l.Trials)
		d := l.Estimate - elapsed
		if done > 0 {
			byPace := time.Duration(float64(elapsed) * (1 - done) / done)
			// The plan's word counts less the further the lane is.
			d = time.Duration(done*float64(byPace) + (1-done)*float64(max(d, 0)))
			ok = true
		}
		left = max(left, d)
	}
	return max(left, 0), ok || left > 0
}
