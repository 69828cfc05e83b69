package live

import (
	"strings"

	"kernsweep/orchestrator/results"
)

// EventOf is the line that a record is worth; ok is false for a record that is
// worth none.
func EventOf(rec results.Record) (e Event, ok bool) {
	text := Line(rec)
	if text == "" {
		return Event{}, false
	}
	e = Event{At: rec.At, Lane: Safe(rec.Lane), Text: strings.TrimPrefix(text, Safe(rec.Lane)+": "), Seq: rec.Seq, Bad: bad(rec)}
	if rec.Outcome == results.Skipped {
		e.Text = Safe("trials skipped: " + rec.Reason)
	}
	return e, true
}
