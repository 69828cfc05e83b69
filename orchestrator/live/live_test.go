package live

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func at(s int) time.Time { return time.Date(2026, 11, 30, 22, 0, s, 0, time.UTC) }

func judged(lane string, second, block int, o results.Outcome, why string) results.Record {
	return results.Record{Lane: lane, At: at(second), Kind: results.KindJudged, Attempt: 1, Outcome: o, Reason: why,
		Slot: &results.Slot{Cell: results.Cell{Target: lane, Kernel: "k", Workload: "w", Scenario: "default"}, Block: block, Repeat: 1}}
}

func TestLeftFollowsThePace(t *testing.T) {
	tr := NewTracker(at(0), []Lane{{Name: "a", Trials: 4, Estimate: 40 * time.Second}})
	if left, ok := tr.Left(at(10)); !ok || left != 30*time.Second {
		t.Errorf("before anything is done: %v %v, want the plan's 30s", left, ok)
	}
	tr.Observe(judged("a", 20, 1, results.OK, ""))
	tr.Observe(judged("a", 40, 2, results.OK, ""))
	if left, _ := tr.Left(at(40)); left < 15*time.Second || left > 40*time.Second {
		t.Errorf("half done after 40s: %v left", left)
	}
	tr.Observe(results.Record{Lane: "a", Kind: results.KindLane, Note: results.NoteEnded})
	if left, ok := tr.Left(at(50)); ok || left != 0 {
		t.Errorf("after the end: %v %v", left, ok)
	}
}

func TestAnotherAttemptIsNoProgress(t *testing.T) {
	tr := NewTracker(at(0), []Lane{{Name: "a", Trials: 2, Estimate: time.Minute}})
	tr.Observe(judged("a", 1, 1, results.Lost, "x"))
	tr.Observe(judged("a", 2, 1, results.OK, ""))
	if n := tr.lanes["a"].trials; n != 1 {
		t.Errorf("one slot counted %d times", n)
	}
}

func TestPlainLines(t *testing.T) {
	var out bytes.Buffer
	p := &Plain{W: &out, Tracker: NewTracker(at(0), []Lane{{Name: "a", Trials: 2, Boots: 1, Estimate: time.Minute}})}
	p.Observe(results.Record{Lane: "a", At: at(1), Kind: results.KindBoot, Outcome: results.OK,
		Boot: &results.Boot{Number: 1, Kernel: "k", Outcome: results.OK, Record: targets.BootRecord{Release: "6.1", Proven: true}}})
	ok := judged("a", 2, 1, results.OK, "")
	ok.Parsed = &workloads.Parsed{Values: []workloads.Value{{Metric: workloads.Metric{Name: "p99", Unit: "us", Primary: true}, Value: 12.345}}}
	p.Observe(ok)
	for block := 2; block < 20; block++ {
		p.Observe(judged("a", 3, block, results.Skipped, "target quarantined: no route"))
	}
	got := out.String()
	for _, want := range []string{"a: boot 001 k: ok, 6.1, scheduler unknown, proven (about", "p99 12.3", "trials skipped: target quarantined: no route"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if n := strings.Count(got, "\n"); n != 3 {
		t.Errorf("%d lines, want 3: one reason, one line\n%s", n, got)
	}
}

func TestDeviceTextCannotDriveTheTerminal(t *testing.T) {
	r := judged("a", 1, 1, results.Failed, "evil \x1b[2J\x07\r\n\u202etext")
	if s := Line(r); strings.ContainsAny(s, "\x1b\x07\r\n\u202e") {
		t.Errorf("%q", s)
	}
}

func TestScreenLeavesItsLastState(t *testing.T) {
	var out bytes.Buffer
	tr := NewTracker(at(0), []Lane{{Name: "a", Trials: 1, Estimate: time.Minute}})
	s := NewScreen(&out, tr, func() int { return 40 }, func() time.Time { return at(5) })
	s.Observe(judged("a", 1, 1, results.Failed, "broken"))
	s.Close()
	got := out.String()
	if !strings.Contains(got, "broken") || !strings.Contains(got, "1/1 trials") {
		t.Errorf("screen shows %q", got)
	}
	last := got[strings.LastIndex(got, "\x1b[J")+3:]
	for _, l := range strings.Split(strings.TrimSuffix(last, "\n"), "\n") {
		if n := len([]rune(l)); n > 40 {
			t.Errorf("line of %d columns on a terminal of 40: %q", n, l)
		}
	}
}

// Many lanes: no drawing is higher than a terminal, and every line fits, whatever
// the names are.
func TestScreenOfManyLanes(t *testing.T) {
	var out bytes.Buffer
	var lanes []Lane
	for i := range 30 {
		lanes = append(lanes, Lane{Name: fmt.Sprintf("%s%02d", strings.Repeat("長い名前", 1+i%5), i), Trials: 12, Estimate: time.Hour})
	}
	tr := NewTracker(at(0), lanes)
	s := NewScreen(&out, tr, func() int { return 80 }, func() time.Time { return at(5) })
	for i, l := range lanes[:25] {
		s.Observe(results.Record{Lane: l.Name, At: at(1), Kind: results.KindLane, Note: results.NoteBegan})
		if i%2 == 0 {
			r := judged(l.Name, 2, 1, results.Failed, "x")
			r.Slot.Kernel = strings.Repeat("k", 60)
			s.Observe(r)
		}
	}
	s.Close()
	last := out.String()[strings.LastIndex(out.String(), "\x1b[J")+3:]
	lines := strings.Split(strings.TrimSuffix(last, "\n"), "\n")
	if len(lines) > 22 || !strings.Contains(last, "and 12 lanes more: 13 failed") {
		t.Errorf("%d lines:\n%s", len(lines), last)
	}
	for i, l := range lines {
		if n := ansi.StringWidthWc(l); n > 79 || i == 0 && !strings.Contains(l, "1 failed") {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}
