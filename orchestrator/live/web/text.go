package web

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// hiding is a character that shows nothing and changes how the text around it
// looks: controls, and what turns the direction of writing.
func hiding(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

// inert makes what hides visible as a dot.
func inert(s string) string {
	if !strings.ContainsFunc(s, hiding) && utf8.ValidString(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hiding(r) {
			return '·'
		}
		return r
	}, strings.ToValidUTF8(s, "·"))
}

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

// outcomeText counts trials in words.
func outcomeText(n map[results.Outcome]int, missing int) string {
	var s []string
	known := outcomes()
	other := slices.Sorted(maps.Keys(n)) // of them those that are finer than an outcome
	for _, o := range append(known, slices.DeleteFunc(other, func(o results.Outcome) bool { return slices.Contains(known, o) })...) {
		if n[o] > 0 {
			s = append(s, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	if missing > 0 {
		s = append(s, fmt.Sprintf("%d not tried", missing))
	}
	if len(s) == 0 {
		return "nothing yet"
	}
	return strings.Join(s, ", ")
}

// outcomes are all of them, in the order in which people are told.
func outcomes() []results.Outcome {
	return []results.Outcome{results.OK, results.Failed, results.BootFailed, results.Lost, results.Invalid, results.Interrupted, "running",
		results.Skipped, results.SkippedByHand, results.NotApplicable}
}
