package live

import (
	"fmt"
	"io"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
)

// Watching follows a run that any process executes, by its journal. It is not
// safe for concurrent use.
type Watching struct {
	run      *results.Run
	follower *results.Follower
	tracker  *Tracker
	sessions []results.Session
	held     bool
	planned  bool
}

// Watch begins to follow a run. Nothing is read before Look.
func Watch(run *results.Run) *Watching {
	return &Watching{run: run, follower: run.Follow(), tracker: NewTracker(run.Meta.Created, nil)}
}

// Look reads what is new: past and coming records, in order. Who holds the run
// is asked first, so that what was recorded before it let go is read after.
func (w *Watching) Look() ([]results.Record, error) {
	_, w.held = w.run.HeldBy()
	recs, err := w.follower.Next()
	if err != nil {
		return nil, err
	}
	if !w.planned {
		w.planned = true
		w.plan()
	}
	for _, rec := range recs {
		if rec.Kind == results.KindRun && strings.HasPrefix(rec.Note, results.NoteBegan) {
			_, why, _ := strings.Cut(rec.Note, ": ")
			w.sessions = append(w.sessions, results.Session{Began: rec.At, Why: why})
			if len(w.sessions) > 1 && !strings.HasPrefix(why, results.WhyResume) {
				w.plan()
			}
		}
		w.tracker.Observe(rec)
	}
	return recs, nil
}

// Held says whether a process executed the run when Look looked.
func (w *Watching) Held() bool { return w.held }

// Plain prints on out what Look has read.
func (w *Watching) Plain(out io.Writer) *Plain { return &Plain{W: out, Tracker: w.tracker} }

// View is how the run stands, as far as Look has read.
func (w *Watching) View(now time.Time) View {
	v := w.tracker.View(now, w.held)
	v.Run, v.Sweep = Safe(w.run.Name()), Safe(w.run.Meta.Sweep)
	return v
}

// plan reads what the newest session executes. Without a plan that can be read
// nothing is known of what is to come, and lanes appear as they begin.
func (w *Watching) plan() {
	var p struct {
		Lanes []struct {
			Target   string        `json:"target"`
			Estimate time.Duration `json:"estimate"`
			Boots    []struct {
				Trials []struct{} `json:"trials"`
			} `json:"boots"`
		} `json:"lanes"`
	}
	if n, err := w.run.Rerun(&results.Model{Sessions: w.sessions}, &p); err != nil || n == 0 {
		p.Lanes = nil
		_, _ = w.run.ReadPlan(&p) // see above
	}
	var lanes []Lane
	for _, l := range p.Lanes {
		row := Lane{Name: l.Target, Boots: len(l.Boots), Estimate: l.Estimate}
		for _, b := range l.Boots {
			row.Trials += len(b.Trials)
		}
		lanes = append(lanes, row)
	}
	w.tracker.plan(lanes)
}

// Text is a duration for people: 7 h 12 m, 3 m 05 s, 12 s.
func Text(d time.Duration) string {
	d = d.Round(time.Second)
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case h > 0:
		return fmt.Sprintf("%d h %02d m", h, m)
	case m > 0:
		return fmt.Sprintf("%d m %02d s", m, s)
	}
	return fmt.Sprintf("%d s", s)
}
