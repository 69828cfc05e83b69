package report

import (
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// A second session repeats one cell alone, another is repeated whole: the report
// tells the sessions apart, shows what was superseded and what failed first, and
// says what --until left out.
func TestSessionsAreToldApart(t *testing.T) {
	l := newLab(t, "s")
	wall := workloads.Metric{Name: "wall", Unit: "s", Better: workloads.LowerIsBetter, Primary: true}
	l.target(results.PlannedTarget{Name: "desk", Arch: "amd64"})
	l.cells("desk", []string{"cfs", "bfs"}, "exec.w", []string{"default"}, 3, 1, wall)
	try := func(kernel string, block, attempt int, o results.Outcome, reason string, v float64) {
		s := slot("desk", kernel, "exec.w", "default", block, l.booted("desk", kernel, "6.1", kernel, block), 1)
		rec := results.Record{Lane: "desk", Kind: results.KindStarted, Slot: &s, Attempt: attempt}
		l.add(rec)
		rec.Kind, rec.Outcome, rec.Reason = results.KindJudged, o, reason
		if o == results.OK {
			rec.Parsed = parsed([]workloads.Metric{wall}, v)
		}
		l.add(rec)
	}
	try("cfs", 1, 1, results.OK, "", 10)
	try("bfs", 1, 1, results.Lost, "link lost: no route", 0)
	try("cfs", 2, 1, results.OK, "", 11)
	try("bfs", 2, 1, results.OK, "", 12)
	l.add(results.Record{Lane: "desk", Kind: results.KindCut, Cut: &results.Cut{Until: t0.Add(9 * time.Hour), Block: 3, Trials: 2}})
	l.end("desk")
	text := render(t, l.done())
	for _, want := range []string{"LEFT OUT on desk", "blocks from 3 on, 2 trials", "kernsweep resume " + l.run.Name()} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("after the first session %q is missing:\n%s", want, text)
		}
	}
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan + ": rerun --failed --only-failed-cells"})
	l.add(results.Record{Lane: "desk", Kind: results.KindLane, Note: results.NoteBegan})
	try("bfs", 1, 2, results.OK, "", 9)
	try("cfs", 2, 2, results.OK, "", 11.5)
	try("bfs", 2, 2, results.OK, "", 12.5)
	l.end("desk")
	text = strings.Join(strings.Fields(render(t, l.done())), " ")
	for _, want := range []string{
		"session 2 ", ": rerun --failed --only-failed-cells",
		"block 1 on desk holds trials of sessions 1, 2, 17s apart: a resumed block",
		"3 slots with more than one attempt",
		"desk/bfs/exec.w.default 1, 1 2 2 (session 2)", "link lost: no route",
		"desk/cfs/exec.w.default 2, 1 2 2 (session 2) attempt 1: 11, now 11.5 s",
		"desk/bfs/exec.w.default 2, 1 2 2 (session 2) attempt 1: 12, now 12.5 s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	for _, not := range []string{"LEFT OUT", "block 2 on desk holds"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is there:\n%s", not, text)
		}
	}
}

// The cause for which a target was withdrawn stays in sight when a later session
// measured it.
func TestSkippedAtFirst(t *testing.T) {
	trial := func(repeat int, reason string, more ...*results.Attempt) *results.Trial {
		s := results.Slot{Cell: results.Cell{Target: "desk", Kernel: "cfs"}, Block: 1, Repeat: repeat}
		return &results.Trial{Slot: s, Attempts: append([]*results.Attempt{{Number: 1, Outcome: results.Skipped, Reason: reason}}, more...)}
	}
	ok := &results.Attempt{Number: 2, Outcome: results.OK}
	var d Document
	for _, x := range []*results.Trial{trial(1, "no power", ok), trial(2, "no power", ok), trial(3, "no power", &results.Attempt{Number: 2, Outcome: results.Skipped})} {
		d.skippedFirst(x)
	}
	s := sessionList(&source{doc: &d}, 200)
	if len(s.lines) != 1 || s.lines[0] != "desk: 2 trials skipped at first, and measured by a later session: no power" {
		t.Error(s.lines)
	}
}

// Days apart it is said aloud.
func TestMixedDaysApart(t *testing.T) {
	s := sessionList(&source{doc: &Document{Mixed: []Mixed{{Target: "desk", Block: 2, Sessions: []int{1, 3}, ApartS: 90000}}}}, 200)
	if text := strings.Join(s.lines, " "); !strings.Contains(text, "MIXED: block 2 on desk holds trials of sessions 1, 3, 25.0 h apart: ") {
		t.Error(text)
	}
}

func TestApart(t *testing.T) {
	for s, want := range map[float64]string{-5: "an unknown time (the clock jumped)", 61: "1m1s", 5400: "1.5 h", 259200: "3.0 days"} {
		if got := apart(s); got != want {
			t.Errorf("%v s: %q, want %q", s, got, want)
		}
	}
}
