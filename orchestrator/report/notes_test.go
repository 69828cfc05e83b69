package report

import (
	"strings"
	"testing"
	"time"
)

// A note of every session stands once, with how often it was made; the same text
// of another lane is another note.
func TestNotesOnce(t *testing.T) {
	first := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	list := []Note{{At: first, Lane: "a", Text: "left over"}, {At: first.Add(time.Minute), Lane: "b", Text: "left over"},
		{At: first.Add(time.Hour), Lane: "a", Text: "left over"}, {At: first.Add(2 * time.Hour), Text: "end"}}
	s := notes(&source{doc: &Document{Notes: list}}, 200)
	want := []string{
		"2026-11-30 22:00:00 UTC  a: left over (2 times, the last 2026-11-30 23:00:00 UTC)",
		"2026-11-30 22:01:00 UTC  b: left over",
		"2026-12-01 00:00:00 UTC  end",
	}
	if got := strings.Join(s.lines, "\n"); got != strings.Join(want, "\n") {
		t.Error(got)
	}
}
