package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// times fills in since when a run stands as it does, and how long it took.
func (s *runStatus) times(run *results.Run, sessions []results.Session) {
	for i, x := range sessions {
		s.Began, s.Ended = x.Began, x.Ended
		if x.Ended.IsZero() && (i < len(sessions)-1 || s.State != "running") {
			s.Ended = lastHeard(run, x.Began)
		}
		until := s.Ended
		if until.IsZero() {
			until = time.Now()
		}
		if i == len(sessions)-1 || !x.Ended.IsZero() {
			s.Seconds += max(0, until.Sub(x.Began).Seconds())
		}
		if x.Interrupted {
			_, s.Why, _ = strings.Cut(x.Note, ": ")
		} else {
			s.Why = ""
		}
	}
}

// lastHeard is when a dead controller wrote its last record.
func lastHeard(run *results.Run, began time.Time) time.Time {
	st, err := os.Stat(filepath.Join(run.Dir(), "journal.jsonl"))
	if err != nil || st.ModTime().Before(began) {
		return began
	}
	return st.ModTime()
}

// left estimates how long a run still takes; 0 when nothing can be said.
func left(run *results.Run) time.Duration {
	w := live.Watch(run)
	if _, err := w.Look(); err != nil {
		return 0
	}
	s := w.View(time.Now()).LeftS
	if s == nil {
		return 0
	}
	return time.Duration(*s * float64(time.Second))
}

// clock is a time as a person says it who knows what day it is.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch {
	case !t.Before(midnight) && t.Before(midnight.AddDate(0, 0, 1)):
		return t.Format("15:04")
	case !t.Before(midnight.AddDate(0, 0, -1)) && t.Before(midnight):
		return "yesterday " + t.Format("15:04")
	case !t.Before(midnight.AddDate(0, 0, -6)) && t.Before(midnight):
		return t.Format("Mon 15:04")
	}
	return t.Format("2006-01-02")
}

// length is a time span in two units at most.
func length(d time.Duration) string {
	if h := int(d.Hours()); h >= 48 {
		return fmt.Sprintf("%d d %d h", h/24, h%24)
	}
	return live.Text(d)
}
