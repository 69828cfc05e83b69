package web

import (
	"fmt"
	"time"

	"kernsweep/orchestrator/live"
)

// ago is an age for people.
func ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in the future (is a clock wrong?)"
	case d < time.Minute:
		return "just now"
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		if h := int(d.Hours()); h > 0 {
			return fmt.Sprintf("%d h %02d m ago", h, int(d.Minutes())%60)
		}
		return fmt.Sprintf("%d m ago", int(d.Minutes()))
	}
	return fmt.Sprintf("%d days ago", int(d/(24*time.Hour)))
}

// span is a number of seconds for people, or why there is none.
func span(s *float64, why string) string {
	if s == nil {
		return "n/a (" + why + ")"
	}
	return live.Text(time.Duration(*s * float64(time.Second)))
}

// clock is a time of day, with the date where it is not today's.
func clock(t, now time.Time) string {
	if t.IsZero() {
		return "n/a (not recorded)"
	}
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}
