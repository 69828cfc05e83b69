package validity

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// The table is what reports and people read: every row is whole.
func TestRunTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range runRules() {
		if r.Name == "" || r.Threshold == "" || !strings.HasSuffix(r.Why, ".") || strings.Count(r.Why, ". ") > 0 {
			t.Errorf("%+v", r)
		}
		if seen[r.Name] {
			t.Errorf("%s stands twice", r.Name)
		}
		seen[r.Name] = true
	}
}

// Nothing on file is nothing found, and no run is too broken to be looked at.
func TestNothingOnFile(t *testing.T) {
	r := newRig(t, false)
	for _, s := range []*results.State{nil, {}, r.state(), {Model: results.Load(nil), Plan: results.PlanSummary{Cells: []results.PlannedCell{
		{Cell: cellOf("x", "cfs", "w", "s"), Baseline: "gone"}, {Cell: cellOf("x", "cfs", "w", "s"), Baseline: "cfs"}, {}}}}} {
		if got := Run(r.run, s); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	}
	// A journal without a plan, whose trials are all that is known.
	r.trial(cellOf("x", "cfs", "crunch.ltm", "j1"), 1, 1, nil, nil)
	r.trial(cellOf("x", "cfs", "crunch.ltm", "j1"), 2, 1, &workloads.Parsed{Values: []workloads.Value{{Value: math.NaN()}}}, &results.Activity{})
	if got := Run(r.run, r.state()); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// A healthy pair of kernels on a healthy target gives no finding at all.
func TestHealthyRun(t *testing.T) {
	r := newRig(t, false)
	rate := metrics(workloads.HigherIsBetter, "throughput")
	ltm := metrics(workloads.LowerIsBetter, append([]string{"makespan"}, ltmMetrics...)...)
	r.cell("ap", "iperf.lan", "default", rate, "cfs", "bfs")
	r.cell("ap", "crunch.ltm", "j3", ltm, "cfs", "bfs")
	for i := range 10 {
		k := []string{"cfs", "bfs"}[i%2]
		n := r.boot("ap", k, nil)
		r.file("ap", n, "probe/config.gz", zipped(debian61))
		r.file("ap", n, "probe/clocksource", "tsc\n")
		r.file("ap", n, "probe/version", "Linux version 6.1 (a@b) (gcc (Debian 12.2.0-14) 12.2.0, GNU ld) #1\n")
		r.file("ap", n, "probe/net", "/sys/class/net/eth0/speed=1000\n")
		r.file("ap", n, "dmesg.txt", quietBoot)
		r.trial(cellOf("ap", k, "iperf.lan", "default"), n, 1, values(rate, 500+100*float64(i%2)), busy(3000, 10, 89))
		r.trial(cellOf("ap", k, "crunch.ltm", "j3"), n, 1, values(ltm, 15+float64(i%2), 10, 15, 10, 15, 10, 15), busy(300, 99, 1))
	}
	for _, f := range Run(r.run, r.state()) {
		t.Errorf("%+v", f)
	}
}

// 200 cells and 1000 boots, with their files, take less than a second.
func TestLargeRunIsFast(t *testing.T) {
	r := newRig(t, false)
	ms := metrics(workloads.LowerIsBetter, append([]string{"makespan"}, ltmMetrics...)...)
	kernels := []string{"cfs", "bfs", "sd", "o1", "rt"}
	const lanes, scenarios, blocks = 10, 4, 20
	log, configs := strings.Repeat(quietBoot, 60), map[string]string{}
	for _, k := range kernels {
		configs[k] = zipped(debian61 + "CONFIG_SCHED_" + strings.ToUpper(k) + "=y\n")
	}
	for l := range lanes {
		lane := fmt.Sprintf("t%02d", l)
		for s := range scenarios {
			r.cell(lane, "crunch.ltm", fmt.Sprintf("j%d", s+1), ms, kernels...)
		}
		for range blocks {
			for _, k := range kernels {
				n := r.boot(lane, k, func(rec *targets.BootRecord) { rec.CPUs = 1 + l%2 })
				r.file(lane, n, "probe/config.gz", configs[k])
				r.file(lane, n, "probe/clocksource", "tsc\n")
				r.file(lane, n, "dmesg.txt", log)
				for s := range scenarios {
					r.trial(cellOf(lane, k, "crunch.ltm", fmt.Sprintf("j%d", s+1)), n, 1, values(ms, 15, 10, 15, 10, 15, 10, 15), busy(300, 99, 1))
				}
			}
		}
	}
	s := r.state()
	if len(s.Plan.Cells) != 200 || len(s.Model.Boots) != 1000 {
		t.Fatal(len(s.Plan.Cells), len(s.Model.Boots))
	}
	best := time.Hour
	for range 3 { // the machine may be busy with something else
		began := time.Now()
		Run(r.run, s)
		best = min(best, time.Since(began))
	}
	if best > 10*time.Second { // 0.2 s on a quiet machine, ten times that with the race detector
		t.Errorf("took %v", best)
	}
	t.Logf("took %v", best)
}
