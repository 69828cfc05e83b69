// Package live turns journal records into progress: plain lines where there is
// no terminal, a few lines that redraw themselves where there is one, and the
// View that a live terminal and the web page show.
package live

import (
	"fmt"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
)

// Lane is what was planned for one target.
type Lane struct {
	Name     string
	Boots    int
	Trials   int           // warm-ups included
	Estimate time.Duration // of the whole lane
}

// Tracker follows a run through its records. It is not safe for concurrent use.
type Tracker struct {
	began  time.Time // this session
	newest time.Time // record
	note   string    // the newest KindRun record's
	order  []string
	lanes  map[string]*laneState
	events []Event
}

type laneState struct {
	Lane
	boots, trials int
	here          int // of trials, in this session
	boot, block   int
	phase         string
	kernel        string
	doing         string
	since         time.Time
	state         LaneState
	reason        string
	last          string        // event
	halted        time.Time     // paused since then; zero: it is not
	rested        time.Duration // in pauses of this session that are over
	outcomes      map[results.Outcome]int
	seen          map[results.SlotKey]results.Outcome
}

const maxEvents = 200 // that a tracker keeps

// NewTracker starts at began.
func NewTracker(began time.Time, lanes []Lane) *Tracker {
	t := &Tracker{began: began}
	t.plan(lanes)
	return t
}

// plan forgets what lanes did: a new plan is about to be executed.
func (t *Tracker) plan(lanes []Lane) {
	t.order, t.lanes = nil, map[string]*laneState{}
	for _, l := range lanes {
		t.add(l)
	}
}

func (t *Tracker) add(l Lane) {
	t.order = append(t.order, l.Name)
	t.lanes[l.Name] = &laneState{Lane: l, outcomes: map[results.Outcome]int{}, seen: map[results.SlotKey]results.Outcome{},
		doing: "waiting", state: Waiting}
}

// Observe takes one record in.
func (t *Tracker) Observe(rec results.Record) {
	t.newest = rec.At
	t.event(rec)
	if rec.Kind == results.KindRun {
		t.session(rec)
		return
	}
	l := t.lanes[rec.Lane]
	if l == nil && rec.Lane != "" && rec.Kind == results.KindLane { // nobody could read its plan
		t.add(Lane{Name: rec.Lane})
		l = t.lanes[rec.Lane]
	}
	if l == nil {
		return
	}
	if s := Line(rec); s != "" {
		l.last = strings.TrimPrefix(s, Safe(rec.Lane)+": ")
	}
	switch rec.Kind {
	case results.KindPhase:
		l.kernel, l.phase, l.boot, l.block = rec.Boot.Kernel, string(rec.Phase), rec.Boot.Number, rec.Boot.Block
		l.does("boot "+l.phase, rec.At)
		if l.state != Paused { // what had begun goes on
			l.state = Running
		}
	case results.KindBoot:
		l.boots++
		l.kernel, l.phase, l.boot, l.block = rec.Boot.Kernel, "", rec.Boot.Number, rec.Boot.Block
		if l.does("booted", rec.At); rec.Outcome != results.OK {
			l.does(string(rec.Outcome), rec.At)
		}
	case results.KindStarted:
		l.kernel, l.block = rec.Slot.Kernel, rec.Slot.Block
		l.does(trialName(rec.Slot), rec.At)
	case results.KindJudged:
		l.judged(rec)
	case results.KindLane:
		l.stands(rec)
	}
}

// does says what the lane is at since when.
func (l *laneState) does(what string, since time.Time) { l.doing, l.since = what, since }

func trialName(s *results.Slot) string {
	name := s.Workload
	if s.Scenario != "default" {
		name += "." + s.Scenario
	}
	if s.Repeat <= 0 {
		return name + " warm-up"
	}
	return fmt.Sprintf("%s #%d", name, s.Repeat)
}

// judged counts a slot once: by its newest outcome, but ok stays ok.
func (l *laneState) judged(rec results.Record) {
	k, o := rec.Slot.Key(), rec.Outcome
	byHand := o == results.Skipped && strings.HasPrefix(rec.Reason, results.SkippedBy)
	if byHand {
		o = results.SkippedByHand
	}
	old, seen := l.seen[k]
	switch {
	case !seen:
		l.trials++
		l.here++
	case old == results.OK:
		return
	default:
		if l.outcomes[old]--; l.outcomes[old] == 0 {
			delete(l.outcomes, old)
		}
	}
	l.seen[k] = o
	l.outcomes[o]++
	if o != results.Skipped && (!byHand || l.doing == trialName(rec.Slot)) {
		l.does("between trials", rec.At)
	}
}

// stands takes over how a lane's own record says that it stands.
func (l *laneState) stands(rec results.Record) {
	note, _, _ := strings.Cut(rec.Note, ":")
	if !l.halted.IsZero() {
		l.rested += max(rec.At.Sub(l.halted), 0)
		l.halted = time.Time{}
	}
	switch note {
	case results.NoteBegan:
		l.state, l.reason = Running, ""
		l.does("beginning", rec.At)
	case results.NotePaused:
		l.state, l.reason, l.halted = Paused, rec.Reason, rec.At
	case results.NoteGoesOn:
		l.state, l.reason = Running, ""
	default:
		l.state, l.reason, l.phase = LaneState(note), rec.Reason, ""
		l.does(rec.Note, rec.At)
	}
}

// session begins or ends one.
func (t *Tracker) session(rec results.Record) {
	t.note = rec.Note
	if !strings.HasPrefix(rec.Note, results.NoteBegan) {
		return
	}
	t.began = rec.At
	for _, l := range t.lanes {
		l.here, l.state, l.reason, l.phase = 0, Waiting, "", ""
		l.halted, l.rested = time.Time{}, 0
		l.does("waiting", rec.At)
	}
}

// Left estimates the time to the end at now: each lane's planned time, scaled by
// how it kept to it so far; the longest decides. ok is false before anything
// can be said.
func (t *Tracker) Left(now time.Time) (left time.Duration, ok bool) {
	for _, l := range t.lanes {
		d, known := l.left(now, now.Sub(t.began))
		left, ok = max(left, d), ok || known
	}
	return left, ok
}

// left is a lane's; its pauses say nothing of its pace.
func (l *laneState) left(now time.Time, elapsed time.Duration) (left time.Duration, ok bool) {
	if elapsed -= l.rested; !l.halted.IsZero() {
		elapsed -= max(now.Sub(l.halted), 0)
	}
	open := l.Trials - l.trials
	if l.state.Over() || l.Trials == 0 || open <= 0 {
		return 0, false
	}
	done := float64(l.here) / float64(l.here+open)
	left = max(time.Duration(float64(l.Estimate)*float64(l.here+open)/float64(l.Trials))-elapsed, 0)
	if done > 0 {
		byPace := time.Duration(float64(elapsed) * (1 - done) / done)
		// The plan's word counts less the further the lane is.
		left = time.Duration(done*float64(byPace) + (1-done)*float64(left))
	}
	return left, done > 0 || left > 0
}
