package results

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kernsweep/targets"
)

// The order is that of the numbers whatever the clock says, and no time is ever
// negative or absurd.
func TestClockThatJumps(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	wall, up := time.Date(1970, 1, 1, 0, 0, 30, 0, time.UTC), 30*time.Second
	w.now, w.up = func() time.Time { return wall }, func() time.Duration { return up }
	pass := func(d, jump time.Duration) { up += d; wall = wall.Add(d + jump) }
	add := func(k Kind, s *Slot) {
		if _, err := w.Append(t.Context(), Record{Lane: "r1", Kind: k, Slot: s, Attempt: 1, Outcome: OK}); err != nil {
			t.Fatal(err)
		}
	}
	forth, back := slotOf(1, 1, 1), slotOf(1, 2, 2)
	add(KindStarted, forth)
	pass(60*time.Second, 56*365*24*time.Hour) // set to the true time in the middle of a trial
	add(KindEnded, forth)
	add(KindStarted, back)
	pass(60*time.Second, -2*time.Hour)
	add(KindEnded, back)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j := journal(t, run)
	if len(j.Notes) != 0 || len(j.Records) != 6 || !strings.Contains(j.Records[1].Note, "clock jumped forward by 490560h0m0s") ||
		!strings.Contains(j.Records[4].Note, "clock was set back by 2h0m0s") {
		t.Fatalf("%q %+v", j.Notes, j.Records)
	}
	m := Load(j.Records)
	for _, s := range []*Slot{forth, back} {
		if d, ok := m.Slot(*s).Attempts[0].Took(); !ok || d != time.Minute {
			t.Errorf("took %s, known %v", d, ok)
		}
	}
	for i := range j.Records {
		j.Records[i].UpMS = 0 // as in a journal of format 1: only the wall clock is there
	}
	m = Load(j.Records)
	for _, s := range []*Slot{forth, back} {
		if d, ok := m.Slot(*s).Attempts[0].Took(); ok {
			t.Errorf("believed that it took %s", d)
		}
	}
}

// Times of two controllers are never subtracted by their own counts.
func TestTookAcrossSessions(t *testing.T) {
	s := &script{}
	s.add(Record{Kind: KindRun, Note: NoteBegan, UpMS: 1})
	s.add(Record{Lane: "r1", Kind: KindStarted, Slot: slotOf(1, 1, 1), Attempt: 1, UpMS: 900_000})
	s.add(Record{Kind: KindRun, Note: NoteBegan, UpMS: 1})
	s.add(Record{Lane: "r1", Kind: KindEnded, Slot: slotOf(1, 1, 1), Attempt: 1, Outcome: OK, UpMS: 500})
	s.add(Record{Kind: KindRun, Note: NoteEnded, UpMS: 1000})
	m := Load(s.recs)
	if d, ok := m.Trials[0].Attempts[0].Took(); !ok || d != 2*time.Second {
		t.Errorf("took %s %v", d, ok)
	}
	if d, ok := m.Sessions[1].Took(); !ok || d != 999*time.Millisecond {
		t.Errorf("session: %s %v", d, ok)
	}
	if _, ok := m.Sessions[0].Took(); ok {
		t.Error("a session that never ended has a length")
	}
}

// What resume needs stands in the journal and comes back from it: tasks, knobs
// that are owed, what was cut, and whose session it was.
func TestTasksKnobsCutsAndSessions(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	slot := slotOf(1, 1, 1)
	task := Task{Machine: "r1", BootID: "b1", Spool: "/tmp/ks/spool", Prefix: "client-"}
	a, b := targets.Knob{Path: "/proc/sys/a", Old: "1"}, targets.Knob{Path: "/proc/sys/b", Old: "3"}
	cut := &Cut{Until: t0, Block: 3, Trials: 12}
	for _, r := range []Record{
		{Kind: KindRun, Note: NoteBegan}, {Lane: "r1", Kind: KindLane, Note: NoteBegan},
		{Lane: "r1", Kind: KindStarted, Slot: slot, Attempt: 1}, {Lane: "r1", Kind: KindTask, Slot: slot, Attempt: 1, Task: &task},
		{Lane: "r1", Kind: KindKnob, Knob: &KnobChange{Knob: a, BootID: "b1"}}, {Lane: "r1", Kind: KindKnob, Knob: &KnobChange{Knob: b, BootID: "b1"}},
		{Lane: "r1", Kind: KindKnob, Knob: &KnobChange{Knob: a, BootID: "b1", Restored: true}}, {Lane: "r1", Kind: KindCut, Cut: cut},
		{Kind: KindRun, Note: NoteBegan + ": " + WhyResume}, {Lane: "r1", Kind: KindEnded, Slot: slot, Attempt: 1, Outcome: OK},
		{Lane: "r1", Kind: KindStarted, Slot: slotOf(1, 2, 2), Attempt: 1}, {Kind: KindRun, Note: NoteInterrupted + ": Ctrl-C"},
		{Kind: KindKnob, Knob: &KnobChange{}}, {Lane: "r1", Kind: KindKnob}, {Kind: KindCut}, {Lane: "r1", Kind: KindTask, Slot: slot, Attempt: 1}, {Kind: KindTask},
	} {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m := Load(journal(t, run).Records)
	l := m.Lanes[0]
	if diff := cmp.Diff([]KnobChange{{Knob: b, BootID: "b1"}}, l.Owed()) + cmp.Diff(cut, l.Cut); diff != "" {
		t.Error(diff)
	}
	first := m.Slot(*slot).Attempts[0]
	if diff := cmp.Diff([]Task{task}, first.Tasks); diff != "" || first.Session != 1 || m.Slot(*slotOf(1, 2, 2)).Attempts[0].Session != 2 {
		t.Errorf("%s, sessions %d", diff, first.Session)
	}
	if len(m.Sessions) != 2 || m.Sessions[1].Why != WhyResume || !m.Sessions[1].Interrupted || m.Sessions[0].Interrupted {
		t.Errorf("%+v", m.Sessions)
	}
	if m.Slot(*slot).Since(2) != nil || fmt.Sprint(m.Slot(*slotOf(1, 2, 2)).Since(2).Slot.Boot) != "2" {
		t.Error("attempts of earlier sessions are not left out")
	}
}
