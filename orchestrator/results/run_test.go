package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kernsweep/workloads"
)

func TestCreateOpenFind(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	a, err := Create(runs, "overnight", RunMeta{Who: "kim"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Create(runs, "quick", RunMeta{Who: "kim", Images: map[string]string{"vmlinuz": "aa"}}, t0.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := filepath.Match("20261130T220000Z-overnight-????", a.Name()); !ok || filepath.Base(a.Dir()) != a.Name() {
		t.Errorf("name %s in %s", a.Name(), a.Dir())
	}
	for what, want := range map[string]string{
		"latest": b.Name(), a.Name(): a.Name(), "20261130T22": a.Name(), a.Dir(): a.Name(), a.Dir() + "/": a.Name(),
	} {
		got, err := Find(runs, what)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if got.Name() != want {
			t.Errorf("%s found %s", what, got.Name())
		}
	}
	for what, want := range map[string]string{
		"2026":  "could be any of 2 runs",
		"nope":  "begins with \"nope\"; there are:\n  " + b.Name() + "\n  " + a.Name(),
		"./xyz": "is no run directory",
		"":      "which run?",
	} {
		if _, err := Find(runs, what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := Latest(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no runs in") {
		t.Error(err)
	}
	got, err := Open(b.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.Meta, got.Meta); diff != "" {
		t.Error(diff)
	}
}

func TestNewestOfOneSecond(t *testing.T) {
	runs := t.TempDir()
	for _, sweep := range []string{"z", "a", "m"} { // created in this order
		now := t0.Add(map[string]time.Duration{"z": 1, "a": 3, "m": 2}[sweep] * time.Millisecond)
		if _, err := Create(runs, sweep, RunMeta{}, now); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := Latest(runs); err != nil || r.Meta.Sweep != "a" {
		t.Errorf("%v %v", r, err)
	}
}

func TestOpenRefusesANewerFormat(t *testing.T) {
	run := newRun(t)
	path := filepath.Join(run.Dir(), metaFile)
	if err := os.WriteFile(path, []byte(`{"format":99,"kernsweep_version":"9.0"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(run.Dir()); err == nil || !strings.Contains(err.Error(), "has format 99") {
		t.Error(err)
	}
}

func TestPaths(t *testing.T) {
	run := newRun(t)
	slot := Slot{Cell: Cell{"wl500gpv2", "bfs", "iperf.to_target", "default"}, Boot: 3, Repeat: 1}
	for _, c := range []struct{ got, want string }{
		{run.TrialDir(slot, 1), "wl500gpv2/boot-003/iperf.to_target.default.01/attempt-1"},
		{run.BootDir("../../etc", 1), "%2E%2E%2F%2E%2E%2Fetc/boot-001"},
		{run.LaneDir(""), "%"},
		{run.LaneDir("run.json"), "run%2Ejson"},
		{run.LaneDir("-rf"), "%2Drf"},
	} {
		if rel, err := filepath.Rel(run.Dir(), c.got); err != nil || rel != c.want {
			t.Errorf("%s, want %s (%v)", rel, c.want, err)
		}
	}
	slot.Repeat = 0
	if got := filepath.Base(filepath.Dir(run.TrialDir(slot, 1))); got != "iperf.to_target.default.warmup-01" {
		t.Error(got)
	}
	if len(filepath.Base(run.LaneDir(strings.Repeat("/", 300)))) > 128 {
		t.Error("a long name is not cut")
	}
	if err := run.WriteFile("../evil", nil); err == nil {
		t.Error("a file outside the run directory was written")
	}
}

func TestDirectoriesAreNeverReused(t *testing.T) {
	run := newRun(t)
	slot := Slot{Cell: Cell{"r1", "bfs", "iperf.a", "default"}, Boot: 1, Repeat: 1}
	m := Load(nil)
	if n := run.NextBoot("r1", m); n != 1 {
		t.Error(n)
	}
	if _, err := run.NewBootDir("r1", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := run.NewTrialDir(slot, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := run.NewTrialDir(slot, 1); err == nil {
		t.Error("an attempt was overwritten")
	}
	if _, err := run.NewBootDir("r1", 1); err == nil {
		t.Error("a boot was reused")
	}
	if b, a := run.NextBoot("r1", m), run.NextAttempt(slot, m); b != 2 || a != 2 {
		t.Errorf("next boot %d, next attempt %d", b, a)
	}
}

func TestPlanRoundTrip(t *testing.T) {
	run := newRun(t)
	if s, err := run.State(); err != nil || len(s.Plan.Cells) != 0 {
		t.Errorf("a run without a plan: %v", err)
	}
	want := PlanSummary{Sweep: "s", Seed: 7, Targets: []PlannedTarget{{Name: "r1", Boots: 4}}, Kernels: []PlannedKernel{{Name: "bfs"}},
		Cells:   []PlannedCell{{Cell: Cell{"r1", "bfs", "iperf.a", "default"}, Baseline: "cfs", Boots: 2, Repeat: 3, Warmup: 1, NA: "no room"}},
		Metrics: map[string][]workloads.Metric{"iperf.a.default": {{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}}}}
	if err := run.WritePlan(want, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	var own []int
	got, err := run.ReadPlan(&own)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got) + cmp.Diff([]int{1, 2}, own); diff != "" {
		t.Error(diff)
	}
}
