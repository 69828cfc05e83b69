package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// drawn is a workload whose value is drawn by the number of the boot and its kernel.
type drawn struct {
	echo
	m     *machine
	value func(boot int, kernel string) float64
}

func (d *drawn) Run(_ context.Context, env *workloads.Env) error {
	d.m.mu.Lock()
	n := len(d.m.boots)
	v := d.value(n, d.m.boots[n-1])
	d.m.mu.Unlock()
	return os.WriteFile(filepath.Join(env.Dir, "value"), []byte(strconv.FormatFloat(v, 'g', -1, 64)), 0o644)
}

func (d *drawn) Parse(files fs.FS) (workloads.Parsed, error) {
	b, err := fs.ReadFile(files, "value")
	if err != nil {
		return workloads.Parsed{}, &workloads.InvalidError{Reason: err.Error()}
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return workloads.Parsed{Values: []workloads.Value{{Metric: d.Metrics()[0], Value: v}}}, err
}

// autoLab is a lab with boots = "auto", at most so many.
func autoLab(t *testing.T, most int, value func(boot int, kernel string) float64) *fakeLab {
	d := &drawn{value: value}
	f := newFakeLab(t, map[string]workloads.Workload{"default": d})
	d.m = f.m
	s := f.lab.Sweeps[0]
	s.Auto, s.Boots, s.HalfWidth = true, most, 0.01
	return f
}

// begin makes a run with its plan.
func (f *fakeLab) begin(t *testing.T) (*results.Run, *plan.Plan) {
	t.Helper()
	p := planOf(t, f)
	run, err := results.Create(t.TempDir(), p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WritePlan(Summary(f.lab, p), p); err != nil {
		t.Fatal(err)
	}
	return run, p
}

// remaining is what a resume of the run would do.
func (f *fakeLab) remaining(t *testing.T, run *results.Run) *plan.Plan {
	t.Helper()
	s, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Planned(run, s.Model)
	if err != nil {
		t.Fatal(err)
	}
	var again plan.Plan
	n, err := run.Rerun(s.Model, &again)
	if err != nil {
		t.Fatal(err)
	}
	return Remaining(f.lab, p, s.Model, Rerun{Session: n, Plan: &again})
}

// notRun counts the trials that a run asks for and lacks.
func notRun(t *testing.T, run *results.Run) int {
	t.Helper()
	s, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range s.Plan.Cells {
		n += s.NotRun(c)
	}
	return n
}

// spread is a value that differs by about a percent from boot to boot.
func spread(boot int, _ string) float64 {
	return 100 + 0.9*float64([]int{0, 1, -1, 1, 0, -1, -1, 1}[boot%8])
}

// recorded is a run of which so many blocks are on file, and then was stopped.
func (f *fakeLab) recorded(t *testing.T, blocks int) *results.Run {
	t.Helper()
	run, p := f.begin(t)
	w, err := run.OpenWriter("test")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	d := f.lab.Workloads[0].Scenarios[0].Run.(*drawn)
	recs := []results.Record{{Kind: results.KindRun, Note: results.NoteBegan}, {Kind: results.KindLane, Lane: "box", Note: results.NoteBegan}}
	for _, b := range p.Lanes[0].Boots {
		if b.Block > blocks {
			break
		}
		boot := &results.Boot{Number: b.Number, Block: b.Block, Kernel: b.Kernel, Outcome: results.OK}
		boot.Record.Proven, boot.Record.BootID = true, fmt.Sprintf("%08d-0000-4000-8000-000000000000", b.Number)
		recs = append(recs, results.Record{Kind: results.KindBoot, Lane: "box", Outcome: results.OK, Boot: boot})
		for _, s := range b.Trials {
			v := &workloads.Parsed{Values: []workloads.Value{{Metric: d.Metrics()[0], Value: d.value(b.Number, b.Kernel)}}}
			recs = append(recs, results.Record{Kind: results.KindStarted, Lane: "box", Slot: &s, Attempt: 1},
				results.Record{Kind: results.KindJudged, Lane: "box", Slot: &s, Attempt: 1, Outcome: results.OK, Parsed: v})
		}
		f.m.boots = append(f.m.boots, b.Kernel)
	}
	recs = append(recs, results.Record{Kind: results.KindLane, Lane: "box", Note: results.NoteInterrupted}, results.Record{Kind: results.KindRun, Note: results.NoteInterrupted})
	for _, r := range recs {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	f.resume = true
	return run
}

// goOn resumes a run to its end.
func (f *fakeLab) goOn(t *testing.T, run *results.Run) *results.Model {
	t.Helper()
	m, err := f.executeIn(t, t.Context(), run, f.remaining(t, run), nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The widths of intervals end a lane; where they lie does not: a kernel that is
// twice as fast gets as many boots as one that is no different.
func TestAutoLooksAtWidthsOnly(t *testing.T) {
	t.Parallel()
	blocks := map[int]bool{}
	for _, factor := range []float64{1, 2} {
		f := autoLab(t, 15, func(boot int, kernel string) float64 {
			if kernel == "b" {
				return spread(boot, kernel) * factor
			}
			return spread(boot, kernel)
		})
		run := f.recorded(t, 4)
		m := f.goOn(t, run)
		e := laneOf(t, m, "box").Enough
		if e == nil || e.HalfWidth > 0.01 || e.Wanted != 0.01 || e.Widest != "kernel b, echo.w.default n" {
			t.Fatalf("factor %g: %+v\n%s", factor, e, notes(m, "box"))
		}
		blocks[e.Blocks] = true
		if e.Blocks <= 5 || e.Blocks >= 15 || count(m)[results.OK] != 2*e.Blocks || notRun(t, run) != 0 || m.ExitStatus() != 0 {
			t.Errorf("factor %g: %+v, %v, %d not run", factor, e, count(m), notRun(t, run))
		}
		for _, want := range []string{"after block 5 the widest interval is ±", fmt.Sprintf("enough: %d blocks, widest ±", e.Blocks)} {
			if !strings.Contains(notes(m, "box"), want) {
				t.Errorf("%q is not among the notes:\n%s", want, notes(m, "box"))
			}
		}
		if left := f.remaining(t, run); len(left.Lanes) != 0 {
			t.Errorf("a resume would take up %v", shape(left))
		}
	}
	if len(blocks) != 1 {
		t.Errorf("what is measured decides how often: %v", blocks)
	}
}

// max_boots is the end, also where it is not narrow.
func TestAutoEndsAtMaxBoots(t *testing.T) {
	t.Parallel()
	f := autoLab(t, 6, func(boot int, _ string) float64 { return float64(1 + boot%4) })
	m := f.goOn(t, f.recorded(t, 5))
	if e := laneOf(t, m, "box").Enough; e != nil || count(m)[results.OK] != 12 || !strings.Contains(notes(m, "box"), "1 % is asked for, and max_boots is reached") {
		t.Errorf("never narrow: %+v, %v\n%s", e, count(m), notes(m, "box"))
	}
}

// A kernel that never boots, and values that are never there, hold nobody up.
func TestAutoDoesNotWaitForever(t *testing.T) {
	t.Parallel()
	f := autoLab(t, 15, func(int, string) float64 { return 7 })
	f.lab.Sweeps[0].BootFailures = 1
	f.m.fail = func(_ int, k string) error {
		if k == "b" {
			return &targets.BootError{Kernel: k, Stage: "panic", Err: errors.New("not syncing")}
		}
		return nil
	}
	run, p := f.begin(t)
	m, err := f.executeIn(t, t.Context(), run, p, nil)
	e := laneOf(t, m, "box").Enough
	if err != nil || e == nil || e.Blocks != 5 || e.Widest != "kernel a, echo.w.default n" {
		t.Errorf("%+v, %v\n%s", e, err, notes(m, "box"))
	}
	if !strings.Contains(notes(m, "box"), "; not waited for: kernel b, echo.w.default n (the kernel is not booted any more)") {
		t.Error(notes(m, "box"))
	}
}

// --until ends a lane with boots = "auto" as any other, and resume goes on with it
// until it is enough.
func TestAutoAndUntil(t *testing.T) {
	t.Parallel()
	f, clock := nightLab(t, 40*time.Minute) // time for a block
	d := &drawn{m: f.m, value: spread}
	f.lab.Workloads[0].Scenarios[0].Run = d
	s := f.lab.Sweeps[0]
	s.Auto, s.Boots, s.HalfWidth = true, 15, 0.01
	run := f.recorded(t, 4)
	f.lab.Workloads[0].Scenarios[0].Run = &passing{d, clock}
	m := f.goOn(t, run)
	l := laneOf(t, m, "box")
	if l.Cut == nil || l.Cut.Block != 6 || l.Enough != nil || notRun(t, run) != 2*10 {
		t.Fatalf("cut %+v, enough %+v, %d not run", l.Cut, l.Enough, notRun(t, run))
	}
	f.night = nil
	m = f.goOn(t, run)
	l = laneOf(t, m, "box")
	if l.Cut != nil || l.Enough == nil || l.Enough.Blocks < 6 || notRun(t, run) != 0 {
		t.Errorf("cut %+v, enough %+v, %d not run", l.Cut, l.Enough, notRun(t, run))
	}
}

// passing is a workload that takes five minutes of a clock moved by hand.
type passing struct {
	*drawn
	clock *fakeTime
}

func (p *passing) Run(ctx context.Context, env *workloads.Env) error {
	p.clock.pass(5 * time.Minute)
	return p.drawn.Run(ctx, env)
}

// A target that is given up has not enough; when what was skipped is measured
// later, it may have.
func TestAutoAndQuarantine(t *testing.T) {
	t.Parallel()
	f := autoLab(t, 8, func(int, string) float64 { return 7 })
	f.lab.Targets[0].Quarantine = 1
	f.m.fail = func(int, string) error { return errors.New("the PDU does not answer") }
	run := f.recorded(t, 4)
	m := f.goOn(t, run)
	if l := laneOf(t, m, "box"); !l.Quarantined || l.Enough != nil || count(m)[results.Skipped] != 8 || m.ExitStatus() != results.ExitInfrastructure {
		t.Fatalf("%+v, %v", l, count(m))
	}
	whole, err := Planned(run, m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := whole.Repeated(f.lab, plan.Selection{Want: func(s results.Slot) bool { return m.Slot(s).Outcome() != results.OK }})
	if err != nil {
		t.Fatal(err)
	}
	f.m.fail, f.resume = nil, false
	m, err = f.executeIn(t, t.Context(), run, again, nil)
	if l := laneOf(t, m, "box"); err != nil || l.Enough == nil || l.Enough.Blocks != 5 || count(m)[results.OK] != 10 || m.ExitStatus() != 0 {
		t.Errorf("%+v, %v, %v", l, count(m), err)
	}
	if left := f.remaining(t, run); len(left.Lanes) != 0 {
		t.Errorf("%v is left", shape(left))
	}
}

// The controller is killed after any record of the end of a lane: what was enough
// stays enough, nothing is measured twice, and the target comes home.
func TestAutoKilledAtItsEnd(t *testing.T) {
	t.Parallel()
	lab := func() *fakeLab {
		f := autoLab(t, 15, func(int, string) float64 { return 7 })
		f.lab.Targets[0].KnownGood = "a"
		return f
	}
	f := lab()
	run := f.recorded(t, 4)
	f.goOn(t, run)
	j, err := run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(j.Records, func(r results.Record) bool { return r.Kind == results.KindEnough })
	if at < 1 || j.Records[at-1].Kind != results.KindJudged {
		t.Fatalf("record %d comes after %s", at, j.Records[max(0, at-1)].Kind)
	}
	for _, kept := range []int{at, at + 1, len(j.Records) - 1} {
		f := lab()
		f.resume = true
		run, _ := f.begin(t)
		w, err := run.OpenWriter("test")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range j.Records[:kept] {
			r.Run, r.Seq, r.LaneSeq = "", 0, 0
			if _, err := w.Append(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		m := f.goOn(t, run)
		l := laneOf(t, m, "box")
		if l.Enough == nil || l.Enough.Blocks != 5 || l.Ended.IsZero() || count(m)[results.OK] != 10 || notRun(t, run) != 0 {
			t.Errorf("killed after %d of %d records: %+v, %v", kept, len(j.Records), l, count(m))
		}
		for _, tr := range m.Trials {
			if len(tr.Attempts) != 1 {
				t.Errorf("killed after %d records: %v was measured %d times", kept, tr.Slot, len(tr.Attempts))
			}
		}
		if n := f.m.boots; len(n) > 1 || len(n) == 1 && n[0] != "a" {
			t.Errorf("killed after %d records: boots %v", kept, n)
		}
		if left := f.remaining(t, run); len(left.Lanes) != 0 {
			t.Errorf("killed after %d records: %v is left", kept, shape(left))
		}
	}
}

// Blocks that a later session adds are a part of what the run asks for: of a lane
// that had enough too, after a stop in their middle too.
func TestMoreBlocksOfALaneThatHadEnough(t *testing.T) {
	t.Parallel()
	f := autoLab(t, 15, func(int, string) float64 { return 7 })
	run := f.recorded(t, 5)
	m := f.goOn(t, run) // session 2: it is enough
	if e := laneOf(t, m, "box").Enough; e == nil || e.Blocks != 5 || len(f.m.boots) != 10 {
		t.Fatalf("%+v, boots %v", e, f.m.boots)
	}
	f.resume = false
	whole, err := Planned(run, m)
	if err != nil {
		t.Fatal(err)
	}
	more, err := whole.More(f.lab, plan.Addition{Blocks: 2, Session: 3}, plan.History{}, func(results.Cell) string { return "a" })
	if err != nil || more.Lanes[0].Boots[0].Block != 16 || more.Lanes[0].Rounds() != 2 {
		t.Fatalf("%+v, %v", more, err)
	}
	if err := run.WriteSessionPlan(3, more); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ok := 0
	m, _ = f.executeIn(t, ctx, run, more, func(r results.Record) {
		if r.Kind == results.KindJudged {
			if ok++; ok == 2 {
				stop()
			}
		}
	})
	stop()
	if n := notRun(t, run); n == 0 || m.ExitStatus() != results.ExitInterrupted {
		t.Errorf("interrupted: %d not run, exit status %d", n, m.ExitStatus())
	}
	f.resume = true
	left := f.remaining(t, run)
	if len(left.Lanes) != 1 || left.Lanes[0].Boots[0].Block < 17 {
		t.Fatalf("a resume would take up %v", shape(left))
	}
	m = f.goOn(t, run)
	if count(m)[results.OK] != 10+4 || notRun(t, run) != 0 || laneOf(t, m, "box").Enough.Blocks != 5 {
		t.Errorf("%v, %d not run", count(m), notRun(t, run))
	}
	v := m.Values(results.Cell{Target: "box", Kernel: "b", Workload: "echo.w", Scenario: "default"}, "n")
	if len(v.Boots) != 7 || v.Boots[4].Session != 1 || v.Boots[6].Session < 3 {
		t.Errorf("%+v", v.Boots)
	}
}
