package results

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/workloads"
)

// What a run asks for: its plan, without what a lane left because it had enough,
// and with what later sessions added, whichever way it is read.
func TestWhatARunAsksFor(t *testing.T) {
	run, err := Create(t.TempDir(), "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	cell := slotOf(1, 1, 1).Cell
	summary := PlanSummary{Targets: []PlannedTarget{{Name: "r1"}}, Cells: []PlannedCell{{Cell: cell, Boots: 9, Repeat: 2}}}
	if err := run.WritePlan(summary, map[string]any{}); err != nil {
		t.Fatal(err)
	}
	type boot struct {
		Trials []*Slot `json:"trials"`
	}
	type lane struct {
		Boots []boot `json:"boots"`
	}
	plan := func(slots ...*Slot) map[string]any { return map[string]any{"lanes": []lane{{[]boot{{slots}}}}} }
	for n, p := range map[int]any{2: plan(slotOf(11, 1, 0), slotOf(11, 1, 1), slotOf(11, 1, 2), slotOf(3, 1, 1)),
		3: plan(slotOf(12, 1, 1)), 4: plan(slotOf(13, 1, 1)), 5: []string{"of another shape"}} {
		if err := run.WriteSessionPlan(n, p); err != nil {
			t.Fatal(err)
		}
	}
	w, err := run.OpenWriter("me")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{}
	s.add(Record{Kind: KindRun, Note: NoteBegan})
	for _, b := range []int{1, 2, 3, 4} {
		s.trial(slotOf(b, b, 1), 1, OK, OK, 1).trial(slotOf(b, b, 2), 1, OK, OK, 1)
	}
	s.add(Record{Kind: KindEnough, Lane: "r1", Enough: &Enough{Blocks: 5}})
	s.add(Record{Kind: KindRun, Note: NoteBegan + ": rerun"}).trial(slotOf(11, 6, 1), 1, OK, OK, 1).trial(slotOf(12, 7, 1), 1, OK, OK, 1)
	s.add(Record{Kind: KindRun, Note: NoteBegan + ": " + WhyResume}) // session-003.json is of a rerun that never began
	s.add(Record{Kind: KindRun, Note: NoteEnded})
	for _, r := range s.recs {
		r.Seq, r.At = 0, time.Time{}
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() (*State, error){"state": run.State, "reading": run.Reading} {
		s, err := read()
		if err != nil {
			t.Fatal(err)
		}
		c := s.Plan.Cells[0]
		if !slices.Equal(c.Added, []int{11}) || s.NotRun(c) != 2+1 {
			t.Errorf("%s: added %v, %d not run", name, c.Added, s.NotRun(c))
		}
		if c.NA = "no image"; s.NotRun(c) != 0 {
			t.Errorf("%s: an n/a cell is asked for", name)
		}
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), "session-002.json"), []byte(`{"lanes": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	st, err := run.State()
	if err != nil || len(st.Plan.Cells[0].Added) > 0 || !strings.Contains(strings.Join(st.Journal.Notes, "\n"), "session-002.json: it is damaged: what session 2 added to the plan is not known") {
		t.Errorf("damaged: %q, %v", st.Journal.Notes, err)
	}
}

func TestDecides(t *testing.T) {
	rate := workloads.Metric{Name: "rate", Better: workloads.HigherIsBetter, Primary: true}
	loss := workloads.Metric{Name: "loss", Better: workloads.LowerIsBetter}
	info := workloads.Metric{Name: "info", Better: workloads.Informative, Primary: true}
	for _, c := range []struct {
		declared         []string
		rate, loss, info bool
	}{
		{nil, true, false, false},
		{[]string{"iperf.a"}, true, false, false},
		{[]string{"iperf.a.j1"}, true, false, false},
		{[]string{"iperf.a:loss"}, false, true, false},
		{[]string{"iperf.a.j1:loss", "iperf.a"}, true, true, false},
		{[]string{"iperf.a.j3", "iperf", "iperf.b:rate", "iperf.a:info"}, false, false, false},
	} {
		d := Design{Primary: c.declared}
		if d.Decides("iperf.a", "j1", rate) != c.rate || d.Decides("iperf.a", "j1", loss) != c.loss || d.Decides("iperf.a", "j1", info) != c.info {
			t.Errorf("%q", c.declared)
		}
	}
}
