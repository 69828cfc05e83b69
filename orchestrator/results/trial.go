package results

import (
	"fmt"
	"slices"
	"time"

	"kernsweep/workloads"
)

// Attempt is one execution of a slot.
type Attempt struct {
	Number  int
	Slot    Slot // with the boot it ran in
	Started time.Time
	Ended   time.Time // zero: never
	Outcome Outcome   // Interrupted when it never ended or was never judged
	Reason  string
	Collect string // a collection error, beside the outcome
	Parsed  *workloads.Parsed
	Summary *Activity
	Peer    *Activity // of the other end, nil without one, or without its spool
	Session int       // the controller's that made it, from 1
	Tasks   []Task    // that its agents began, oldest first
	How     string    // the ended record's note: the agent's last word
	// Findings of the validity rules; for journals before them the warnings stand
	// in Parsed alone.
	Findings []Finding

	judged bool
	ended  Outcome // what the ended record said

	from, to moment
}

// Trial is a slot and its attempts.
type Trial struct {
	Slot     Slot // of the first attempt
	Attempts []*Attempt
	// FirstFailure is the reason of the first attempt that was not ok, kept
	// when a later one was.
	FirstFailure string
}

// Valid is the newest attempt that counts, nil when there is none.
func (t *Trial) Valid() *Attempt {
	for _, a := range slices.Backward(t.Attempts) {
		if a.Outcome == OK {
			return a
		}
	}
	return nil
}

// Superseded are the valid attempts that a newer valid one replaces, oldest first.
func (t *Trial) Superseded() []*Attempt {
	v := t.Valid()
	var old []*Attempt
	for _, a := range t.Attempts {
		if a.Outcome == OK && a != v {
			old = append(old, a)
		}
	}
	return old
}

// Settled says that the slot has its verdict: resume leaves it alone. One that
// was interrupted, or whose end was never judged, has none.
func (t *Trial) Settled() bool { return t.Valid() != nil || t.Final().Outcome != Interrupted }

// Since is the trial with the attempts of a session and later ones only, nil
// when there are none.
func (t *Trial) Since(session int) *Trial {
	s := *t
	s.Attempts = slices.DeleteFunc(slices.Clone(t.Attempts), func(a *Attempt) bool { return a.Session < session })
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s
}

// Judged says that the journal has a verdict on the attempt.
func (a *Attempt) Judged() bool { return a.judged }

// Outcome is the slot's final state: ok when any attempt is, else the newest one's.
func (t *Trial) Outcome() Outcome { return t.Final().Outcome }

// Final is the attempt that decides: the newest valid one, else the newest one
// that was really executed, else the newest. One that was interrupted decides
// nothing any more once the slot was skipped: its target was given up.
func (t *Trial) Final() *Attempt {
	if a := t.Valid(); a != nil {
		return a
	}
	skipped := false
	for _, a := range slices.Backward(t.Attempts) {
		if a.Outcome == Skipped {
			skipped = true
		} else if !skipped || a.Outcome != Interrupted {
			return a
		}
	}
	return t.Attempts[len(t.Attempts)-1]
}

// attempt finds the attempt a record belongs to, or makes it. A skipped slot
// carries number 0 each time it is skipped.
func (t *Trial) attempt(r *Record) *Attempt {
	for _, a := range slices.Backward(t.Attempts) {
		if a.Number == r.Attempt && a.Slot.Boot == r.Slot.Boot && (r.Attempt > 0 || !a.judged) {
			return a
		}
	}
	a := &Attempt{Number: r.Attempt, Slot: *r.Slot, Outcome: Interrupted}
	a.Slot.Block = t.Slot.Block
	t.Attempts = append(t.Attempts, a)
	return a
}

// judge takes the verdict over, with one exception: infrastructure that failed
// after the end (collection) never replaces how the trial itself ended (law 3).
func (a *Attempt) judge(r *Record) {
	a.judged = true
	a.Parsed, a.Summary, a.Peer, a.Findings = r.Parsed, r.Summary, r.Peer, r.Findings
	if r.Outcome == Lost && a.ended != "" && a.ended != OK && a.ended != Lost {
		if r.Collect == "" {
			a.Collect = r.Reason
		}
		return
	}
	a.Outcome, a.Reason = r.Outcome, r.Reason
}

func (t *Trial) finish() {
	for _, a := range t.Attempts {
		if a.Outcome == Interrupted && a.Reason == "" {
			a.Reason = "started, but no end is recorded: it runs now, or the controller stopped"
			if !a.Ended.IsZero() {
				a.Reason = "it ended, but its evidence was not read: the controller stopped"
				if a.How != "" {
					a.Reason = fmt.Sprintf("it ended (%s), but its evidence was not read: the controller stopped", a.How)
				}
			}
		}
		if a.Outcome != OK && a.Outcome != NotApplicable && t.FirstFailure == "" {
			t.FirstFailure = a.Reason
		}
	}
}
