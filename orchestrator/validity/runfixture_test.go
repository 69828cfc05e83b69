package validity

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// rig builds a run: a plan, the records of boots and trials, and files of boots.
type rig struct {
	t    *testing.T
	run  *results.Run
	plan results.PlanSummary
	recs []results.Record
	at   time.Time
	last map[string]int // boot of a lane
}

func newRig(t *testing.T, imported bool) *rig {
	t.Helper()
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	meta := results.RunMeta{Who: "kim", Host: "bench1", Version: "0.1"}
	if imported {
		meta.Imported = &results.Import{Note: "from the list"}
	}
	run, err := results.Create(t.TempDir(), "night", meta, at)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, run: run, at: at, last: map[string]int{}, plan: results.PlanSummary{Metrics: map[string][]workloads.Metric{}}}
}

func (r *rig) add(rec results.Record) {
	r.at = r.at.Add(time.Second)
	rec.Seq, rec.At = len(r.recs)+1, r.at
	r.recs = append(r.recs, rec)
}

// cell plans the cells of a target and a workload's scenario; the first kernel is
// the baseline.
func (r *rig) cell(target, workload, scenario string, metrics []workloads.Metric, kernels ...string) {
	for _, k := range kernels {
		r.plan.Cells = append(r.plan.Cells, results.PlannedCell{Baseline: kernels[0], Boots: 3, Repeat: 1,
			Cell: results.Cell{Target: target, Kernel: k, Workload: workload, Scenario: scenario}})
	}
	r.plan.Metrics[workload+"."+scenario] = metrics
	if !slices.ContainsFunc(r.plan.Targets, func(t results.PlannedTarget) bool { return t.Name == target }) {
		r.plan.Targets = append(r.plan.Targets, results.PlannedTarget{Name: target})
	}
}

// boot records a good boot and returns its number. change may spoil its record.
func (r *rig) boot(target, kernel string, change func(*targets.BootRecord)) int {
	r.last[target]++
	n := r.last[target]
	rec := targets.BootRecord{Kernel: kernel, BootID: fmt.Sprintf("00000000-0000-4000-8000-%s%08d", "0000", n),
		Release: "6.1.0-" + kernel, Version: "#1 SMP " + kernel, CPUs: 2, MemoryKB: 1 << 20, Proven: true, UptimeS: 30,
		Cmdline: "root=/dev/sda1 kernsweep.nonce=" + fmt.Sprint(n), Nonce: "kernsweep.nonce=" + fmt.Sprint(n),
		Scheduler: targets.Scheduler{Name: kernel},
		CPUFreq:   map[string]string{"governor": "performance", "driver": "acpi-cpufreq", "min_freq": "1400000", "max_freq": "1400000"}}
	if change != nil {
		change(&rec)
	}
	r.add(results.Record{Lane: target, Kind: results.KindBoot, Boot: &results.Boot{Number: n, Kernel: kernel, Block: n, Outcome: results.OK, Record: rec}})
	return n
}

// trial records a good trial in a boot.
func (r *rig) trial(c results.Cell, boot, repeat int, p *workloads.Parsed, a *results.Activity) {
	s := results.Slot{Cell: c, Block: boot, Boot: boot, Repeat: repeat}
	rec := results.Record{Lane: c.Target, Slot: &s, Attempt: 1, Outcome: results.OK}
	for _, k := range []results.Kind{results.KindStarted, results.KindEnded, results.KindJudged} {
		rec.Kind = k
		if k == results.KindJudged {
			rec.Parsed, rec.Summary = p, a
		}
		r.add(rec)
	}
}

// file writes a file below a boot's directory.
func (r *rig) file(target string, boot int, name, text string) {
	r.t.Helper()
	path := filepath.Join(r.run.BootDir(target, boot), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) state() *results.State {
	return &results.State{Plan: r.plan, Model: results.Load(r.recs), Journal: &results.Journal{Records: r.recs}}
}

// found are the findings of one rule.
func (r *rig) found(rule string) []results.Found {
	r.t.Helper()
	var out []results.Found
	for _, f := range Run(r.run, r.state()) {
		if f.Rule == "" || f.Text == "" || f.Threshold == "" {
			r.t.Errorf("a finding without rule, sentence or threshold: %+v", f)
		}
		if f.Rule == rule {
			out = append(out, f)
		}
	}
	return out
}

// metrics of one direction; the first is the primary one.
func metrics(better workloads.Direction, names ...string) []workloads.Metric {
	var ms []workloads.Metric
	for i, n := range names {
		ms = append(ms, workloads.Metric{Name: n, Unit: "s", Better: better, Primary: i == 0})
	}
	return ms
}

func values(ms []workloads.Metric, v ...float64) *workloads.Parsed {
	p := &workloads.Parsed{}
	for i, m := range ms {
		if i < len(v) {
			p.Values = append(p.Values, workloads.Value{Metric: m, Value: v[i]})
		}
	}
	return p
}

func cellOf(target, kernel, workload, scenario string) results.Cell {
	return results.Cell{Target: target, Kernel: kernel, Workload: workload, Scenario: scenario}
}

// iperf is a rig with two kernels, each with one boot and one trial; activity and
// rate are given by kernel.
func iperfRig(t *testing.T, change func(kernel string, rec *targets.BootRecord), activity map[string]*results.Activity, rates map[string]float64) *rig {
	r := newRig(t, false)
	ms := metrics(workloads.HigherIsBetter, "throughput")
	r.cell("ap", "iperf.lan", "default", ms, "cfs", "bfs")
	for _, k := range []string{"cfs", "bfs"} {
		n := r.boot("ap", k, func(rec *targets.BootRecord) {
			if change != nil {
				change(k, rec)
			}
		})
		rate := rates[k]
		if rate == 0 {
			rate = 15
		}
		r.trial(cellOf("ap", k, "iperf.lan", "default"), n, 1, values(ms, rate), activity[k])
	}
	return r
}

// one fails unless there is exactly one finding.
func one(t *testing.T, f []results.Found) results.Found {
	t.Helper()
	if len(f) != 1 {
		t.Fatalf("%d findings, want one: %+v", len(f), f)
	}
	return f[0]
}

func none(t *testing.T, f []results.Found) {
	t.Helper()
	if len(f) != 0 {
		t.Fatalf("found without reason: %+v", f)
	}
}
