package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

var t0 = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

// lab builds the state of a synthetic run, by records as a controller writes them.
type lab struct {
	plan  results.PlanSummary
	recs  []results.Record
	now   time.Time
	boots map[string]int
	lane  map[string]int
	// unproven: boots from now on are, for this reason.
	unproven string
	identity *targets.Identity
	declared string // of boots from now on
}

func newLab() *lab {
	l := &lab{now: t0, boots: map[string]int{}, lane: map[string]int{}}
	l.plan.Metrics = map[string][]workloads.Metric{}
	l.plan.Design.Order = "interleaved"
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	return l
}

func (l *lab) add(r results.Record) {
	l.now = l.now.Add(time.Second)
	r.Seq, r.At = len(l.recs)+1, l.now
	if r.Lane != "" {
		l.lane[r.Lane]++
		r.LaneSeq = l.lane[r.Lane]
	}
	l.recs = append(l.recs, r)
}

// session ends this controller's and begins another one, so much later.
func (l *lab) session(after time.Duration, why string) {
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	l.now = l.now.Add(after)
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan + ": " + why})
}

func throughput() workloads.Metric {
	return workloads.Metric{Name: "throughput", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
}

func elapsed() workloads.Metric {
	return workloads.Metric{Name: "elapsed", Unit: "s", Better: workloads.LowerIsBetter, Primary: true}
}

// cells plans a workload's scenario for kernels, the first of them the baseline.
func (l *lab) cells(target, workload, scenario string, metrics []workloads.Metric, kernels ...string) {
	known := false
	for _, t := range l.plan.Targets {
		known = known || t.Name == target
	}
	if !known {
		l.plan.Targets = append(l.plan.Targets, results.PlannedTarget{Name: target, Boot: "grub"})
	}
	for _, k := range kernels {
		l.plan.Cells = append(l.plan.Cells, results.PlannedCell{Cell: results.Cell{Target: target, Kernel: k, Workload: workload, Scenario: scenario},
			Baseline: kernels[0], Boots: 5, Repeat: 1})
	}
	l.plan.Metrics[workload+"."+scenario] = metrics
}

// boot records one boot of a kernel and returns its number.
func (l *lab) boot(target, kernel string, block int) int {
	l.boots[target]++
	n := l.boots[target]
	r := targets.BootRecord{Kernel: kernel, Release: "6.1", Proven: l.unproven == "", Unproven: l.unproven, BootID: fmt.Sprint(n), Identity: l.identity}
	l.add(results.Record{Lane: target, Kind: results.KindBoot, Boot: &results.Boot{Number: n, Kernel: kernel, Block: block, Outcome: results.OK, Record: r, Declared: l.declared}})
	return n
}

// failed records a boot that failed.
func (l *lab) failed(target, kernel string, block int, stage, reason string, lines ...string) {
	l.boots[target]++
	l.add(results.Record{Lane: target, Kind: results.KindBoot, Boot: &results.Boot{Number: l.boots[target], Kernel: kernel, Block: block,
		Outcome: results.BootFailed, Stage: stage, Reason: reason, LastLines: lines}})
}

type trial struct {
	outcome  results.Outcome
	reason   string
	values   []workloads.Value
	activity *results.Activity
	findings []results.Finding
}

func (l *lab) try(c results.Cell, block, boot, repeat int, t trial) {
	s := results.Slot{Cell: c, Block: block, Boot: boot, Repeat: repeat}
	if t.outcome == "" {
		t.outcome = results.OK
	}
	attempt := 1
	for _, r := range l.recs {
		if r.Kind == results.KindJudged && r.Slot.Key() == s.Key() {
			attempt++
		}
	}
	rec := results.Record{Lane: c.Target, Slot: &s, Attempt: attempt, Kind: results.KindStarted}
	l.add(rec)
	rec.Kind, rec.Outcome, rec.Reason = results.KindJudged, t.outcome, t.reason
	rec.Parsed, rec.Summary, rec.Findings = &workloads.Parsed{Values: t.values}, t.activity, t.findings
	l.add(rec)
}

// measure boots a kernel once and runs one trial for each value of one cell.
func (l *lab) measure(c results.Cell, block int, values ...float64) {
	n := l.boot(c.Target, c.Kernel, block)
	l.inBoot(c, block, n, values...)
}

func (l *lab) inBoot(c results.Cell, block, boot int, values ...float64) {
	m := l.plan.Metrics[c.Workload+"."+c.Scenario]
	for i, v := range values {
		x := workloads.Value{Value: v}
		if len(m) > 0 {
			x.Metric = m[0]
		}
		l.try(c, block, boot, i+1, trial{values: []workloads.Value{x}})
	}
}

// abba measures two kernels in the order ABBA, block by block.
func (l *lab) abba(base results.Cell, kernel string, a, b []float64) {
	l.abbaFrom(1, base, kernel, a, b)
}

func (l *lab) abbaFrom(block int, base results.Cell, kernel string, a, b []float64) {
	other := base
	other.Kernel = kernel
	for i := range a {
		if i%2 == 0 {
			l.measure(base, block+i, a[i])
			l.measure(other, block+i, b[i])
		} else {
			l.measure(other, block+i, b[i])
			l.measure(base, block+i, a[i])
		}
	}
}

func (l *lab) state() *results.State {
	return &results.State{Journal: &results.Journal{Records: l.recs}, Plan: l.plan, Model: results.Load(l.recs)}
}

func cell(target, kernel, workload, scenario string) results.Cell {
	return results.Cell{Target: target, Kernel: kernel, Workload: workload, Scenario: scenario}
}

// around makes n values that spread evenly about middle by half a percent.
func around(middle float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = middle * (1 + 0.005*(2*float64((i*7)%n)/float64(max(1, n-1))-1))
	}
	return out
}

func judge1(t *testing.T, l *lab, o Options) Comparison {
	t.Helper()
	j := Judge("RUN", l.state(), o)
	if len(j.Comparisons) == 0 {
		t.Fatal("no comparison")
	}
	return j.Comparisons[0]
}

func wants(t *testing.T, c Comparison, v stats.Verdict, parts ...string) {
	t.Helper()
	if c.Verdict != v {
		t.Errorf("verdict %q, want %q: %s", c.Verdict, v, c.Sentence)
	}
	for _, p := range parts {
		if !strings.Contains(c.Sentence, p) {
			t.Errorf("%q is missing in: %s", p, c.Sentence)
		}
	}
}
