package report

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

var t0 = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

// lab builds a synthetic run: a plan, a journal through the real writer, and
// raw files where the test gives some.
type lab struct {
	t    *testing.T
	run  *results.Run
	recs []results.Record
	seq  int
	lane map[string]int
	boot map[string]int
	plan results.PlanSummary
}

func newLab(t *testing.T, sweep string) *lab {
	t.Helper()
	run, err := results.Create(t.TempDir(), sweep, results.RunMeta{Who: "kim", Host: "bench1", Version: "0.1", Seed: 7}, t0)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, run: run, lane: map[string]int{}, boot: map[string]int{}}
	l.plan = results.PlanSummary{Sweep: sweep, Seed: 7, Metrics: map[string][]workloads.Metric{}}
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	return l
}

func (l *lab) add(r results.Record) {
	l.seq++
	r.Seq, r.At = l.seq, t0.Add(time.Duration(l.seq)*time.Second)
	if r.Lane != "" {
		l.lane[r.Lane]++
		r.LaneSeq = l.lane[r.Lane]
	}
	l.recs = append(l.recs, r)
}

func (l *lab) target(p results.PlannedTarget) {
	l.plan.Targets = append(l.plan.Targets, p)
	l.add(results.Record{Lane: p.Name, Kind: results.KindLane, Note: results.NoteBegan})
}

// cells plans the product of kernels and scenarios.
func (l *lab) cells(target string, kernels []string, workload string, scenarios []string, boots, repeat int, metrics ...workloads.Metric) {
	for _, s := range scenarios {
		for _, k := range kernels {
			l.plan.Cells = append(l.plan.Cells, results.PlannedCell{Cell: results.Cell{Target: target, Kernel: k, Workload: workload, Scenario: s},
				Baseline: kernels[0], Boots: boots, Repeat: repeat})
		}
		l.plan.Metrics[workload+"."+s] = metrics
	}
}

func (l *lab) kernel(name, scheduler string) {
	l.plan.Kernels = append(l.plan.Kernels, results.PlannedKernel{Name: name, Scheduler: scheduler})
}

// booted records a proven boot and returns its number.
func (l *lab) booted(lane, kernel, release, scheduler string, block int) int {
	return l.bootAs(lane, results.Boot{Kernel: kernel, Block: block, Outcome: results.OK, Record: targets.BootRecord{
		Kernel: kernel, Release: release, Proven: true, Scheduler: targets.Scheduler{Name: scheduler}}})
}

func (l *lab) bootAs(lane string, b results.Boot) int {
	l.boot[lane]++
	b.Number = l.boot[lane]
	if b.Outcome == results.OK {
		b.Record.BootID = fmt.Sprintf("00000000-0000-4000-8000-%012d", b.Number)
	}
	l.add(results.Record{Lane: lane, Kind: results.KindBoot, Boot: &b})
	return b.Number
}

// trial records an attempt with its values, in the order of the metrics.
func (l *lab) trial(s results.Slot, outcome results.Outcome, reason string, p *workloads.Parsed, a *results.Activity) {
	rec := func(k results.Kind) results.Record {
		return results.Record{Lane: s.Target, Kind: k, Slot: &s, Attempt: 1}
	}
	l.add(rec(results.KindStarted))
	l.add(rec(results.KindEnded))
	j := rec(results.KindJudged)
	j.Outcome, j.Reason, j.Parsed, j.Summary = outcome, reason, p, a
	l.add(j)
}

func slot(target, kernel, workload, scenario string, block, boot, repeat int) results.Slot {
	return results.Slot{Cell: results.Cell{Target: target, Kernel: kernel, Workload: workload, Scenario: scenario}, Block: block, Boot: boot, Repeat: repeat}
}

func parsed(metrics []workloads.Metric, values ...float64) *workloads.Parsed {
	p := &workloads.Parsed{}
	for i, v := range values {
		p.Values = append(p.Values, workloads.Value{Metric: metrics[i], Value: v})
	}
	return p
}

// raw writes a file of an attempt's directory.
func (l *lab) raw(s results.Slot, name, text string) {
	dir := l.run.TrialDir(s, 1)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// done writes plan and journal. The records keep the fixture's fixed times.
func (l *lab) done() *results.Run {
	l.t.Helper()
	if err := l.run.WritePlan(l.plan, nil); err != nil {
		l.t.Fatal(err)
	}
	var file []byte
	for _, r := range l.recs {
		b, err := results.EncodeLine(r)
		if err != nil {
			l.t.Fatal(err)
		}
		file = append(file, b...)
	}
	if err := os.WriteFile(filepath.Join(l.run.Dir(), "journal.jsonl"), file, 0o644); err != nil {
		l.t.Fatal(err)
	}
	return l.run
}

func (l *lab) end(targets ...string) {
	for _, t := range targets {
		l.add(results.Record{Lane: t, Kind: results.KindLane, Note: results.NoteEnded})
	}
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteEnded})
}

func m(name, unit string, better workloads.Direction) workloads.Metric {
	return workloads.Metric{Name: name, Unit: unit, Better: better}
}
