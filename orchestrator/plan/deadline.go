package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Deadline is when a run should be over.
type Deadline struct {
	At time.Time // by the wall clock, in the zone it was given in
	// Said tells how a time was understood that the clocks skip or show twice that
	// night, "" for every other.
	Said string
}

// untilForms is what ParseUntil understands, for messages.
const untilForms = `write a time of day ("07:00"), a date and time ("2026-12-01 07:00"), RFC 3339 ("2026-12-01T07:00:00+01:00") or a duration ("8h", "90m")`

// ParseUntil understands a time of day (the next one), a date and time, both in
// loc, an RFC 3339 time, and a duration from now. A time that is past, and text
// that is none of these, is an error.
func ParseUntil(text string, now time.Time, loc *time.Location) (Deadline, error) {
	text, now = strings.TrimSpace(text), now.Round(0).In(loc)
	if d, err := time.ParseDuration(text); err == nil {
		return untilDuration(text, d, now)
	}
	for _, f := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02 15:04Z07:00"} {
		if t, err := time.Parse(f, text); err == nil {
			if t.Location() != time.UTC {
				t = t.In(loc)
			}
			return future(text, Deadline{At: t}, now)
		}
	}
	for _, f := range []string{"2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(f, text); err == nil {
			return future(text, civil(t, now, loc), now)
		}
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		return Deadline{}, fmt.Errorf("%q lacks the time of day: write %q", text, text+" 07:00")
	}
	for _, f := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(f, text); err == nil {
			return nextTime(t, now, loc), nil
		}
	}
	if text == "24:00" {
		return nextTime(time.Time{}, now, loc), nil
	}
	return Deadline{}, fmt.Errorf("%q is no time: %s", text, untilForms)
}

func untilDuration(text string, d time.Duration, now time.Time) (Deadline, error) {
	switch at := now.Add(d); {
	case d == 0 && !strings.ContainsAny(text, "hms"):
		return Deadline{}, fmt.Errorf("%q is no time: %s", text, untilForms)
	case d <= 0:
		return Deadline{}, fmt.Errorf("%q is not in the future: %s", text, untilForms)
	case d > math.MaxInt64/4:
		return Deadline{}, fmt.Errorf("%q is too long", text)
	default:
		return Deadline{At: at}, nil
	}
}

func future(text string, d Deadline, now time.Time) (Deadline, error) {
	if !d.At.After(now) {
		return Deadline{}, fmt.Errorf("%q is past: it was %s ago, it is %s now", text, Round(now.Sub(d.At)), now.In(d.At.Location()).Format("2006-01-02 15:04 MST"))
	}
	return d, nil
}

// nextTime is the next time of day like t's.
func nextTime(t, now time.Time, loc *time.Location) Deadline {
	for day := 0; ; day++ {
		want := time.Date(now.Year(), now.Month(), now.Day()+day, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
		if d := civil(want, now, loc); d.At.After(now) {
			return d
		}
	}
}

// civil is the instant at which clocks in loc show what t shows. Where they skip
// it, it is as long after the jump as it would have been without; where they show
// it twice, the first one that is still to come.
func civil(t, now time.Time, loc *time.Location) Deadline {
	const about = 48 * time.Hour // around t, in any zone
	var offsets []int
	for u := t.Add(-about); !u.After(t.Add(about)); u = u.Add(about / 8) {
		_, off := u.In(loc).Zone()
		if !slices.Contains(offsets, off) {
			offsets = append(offsets, off)
		}
	}
	var found []time.Time
	for _, off := range offsets {
		at := t.Add(-time.Duration(off) * time.Second).In(loc)
		if at.Format(time.DateTime) == t.Format(time.DateTime) {
			found = append(found, at)
		}
	}
	slices.SortFunc(found, time.Time.Compare)
	word := t.Format("15:04")
	switch {
	case len(found) == 1:
		return Deadline{At: found[0]}
	case len(found) == 0:
		at := t.Add(-time.Duration(offsets[0]) * time.Second).In(loc)
		return Deadline{at, fmt.Sprintf("%s does not exist that night: taken as %s", word, at.Format("15:04 MST"))}
	case found[0].After(now):
		return Deadline{found[0], fmt.Sprintf("%s comes twice that night: taken as the first, %s", word, found[0].Format("15:04 MST"))}
	default:
		return Deadline{found[1], fmt.Sprintf("%s comes twice that night, and the first is past: taken as the second, %s", word, found[1].Format("15:04 MST"))}
	}
}

// Clock shows a time as a person standing at now would say it: "07:00 CET", with
// the date where it is not within a day.
func Clock(at, now time.Time) string {
	if d := at.Sub(now.Round(0)); d >= 0 && d < 24*time.Hour {
		return at.Format("15:04 MST")
	}
	return at.Format("Mon 2006-01-02 15:04 MST")
}
