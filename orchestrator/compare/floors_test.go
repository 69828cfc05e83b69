package compare

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// itself is an A/A run: one kernel in so many blocks.
func itself(values []float64) *lab {
	l := newLab()
	l.plan.Design.NoiseFloor = true
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs")
	for i, v := range values {
		l.measure(cell("desk", "cfs", "iperf.to", "default"), i+1, v)
	}
	return l
}

func TestNoiseFloor(t *testing.T) {
	c := judge1(t, itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100, 99, 100}), Options{})
	wants(t, c, stats.NoEvidence, "noise floor ±1.1 %: cfs against itself", "5 boots against 5")
	if c.Kernel != "cfs" || c.Baseline != "cfs" || c.NoiseFloor == nil || *c.NoiseFloor < 0.008 || *c.NoiseFloor > 0.015 {
		t.Errorf("floor %v", c.NoiseFloor)
	}
	c = judge1(t, itself([]float64{100, 112, 112.1, 100.1, 100.2, 112, 112.2, 100.1, 100, 112}), Options{})
	wants(t, c, stats.Invalid, "invalid: ALARM, the device does not agree with itself", "against itself +12.0 %")
	if c.NoiseFloor == nil || *c.NoiseFloor < 0.119 {
		t.Errorf("a device that strays by 12 %% has floor %v", c.NoiseFloor)
	}
	c = judge1(t, itself([]float64{100, 101, 99}), Options{})
	wants(t, c, stats.Inconclusive, "no noise floor yet", "need 4 in each half, 8 boots of cfs")
	if c.NoiseFloor != nil {
		t.Errorf("floor %v of 3 boots", *c.NoiseFloor)
	}
	wants(t, judge1(t, itself([]float64{100}), Options{}), stats.Inconclusive, "one boot cannot be compared with itself")
	wants(t, judge1(t, itself(nil), Options{}), stats.Inconclusive, "n/a (cfs: nothing was measured)")
	// A drift is in both halves.
	drift := make([]float64, 12)
	for i := range drift {
		drift[i] = 100 + 0.8*float64(i)
	}
	wants(t, judge1(t, itself(drift), Options{}), stats.NoEvidence, "against itself 0.0 %")
	l := itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100})
	l.plan.Targets[0].HostBound = true
	if c := judge1(t, l, Options{}); c.NoiseFloor != nil || c.Verdict != stats.Inconclusive {
		t.Errorf("a floor of a host-bound target: %s", c.Sentence)
	}
}

func TestFloorsAreTheSmallestEffect(t *testing.T) {
	f := Floors{FloorKey{"desk", "iperf.to", "default", "throughput"}: {HalfWidth: 0.05, Run: "20261101-aa", Kernel: "cfs", Date: "2026-11-01", Boots: 10}}
	c := judge1(t, pair(throughput(), around(100, 5), around(103, 5)), Options{Floors: f})
	wants(t, c, stats.Same, "same within 5 % (the device's own noise: A/A run 20261101-aa of 2026-11-01, kernel cfs, 10 boots): +3.0 %")
	if c.Effect != 0.05 || c.EffectFrom == "" {
		t.Errorf("effect %g from %q", c.Effect, c.EffectFrom)
	}
	f[FloorKey{"desk", "iperf.to", "default", "throughput"}] = Floor{HalfWidth: 0.001}
	if c := judge1(t, pair(throughput(), around(100, 5), around(103, 5)), Options{Floors: f}); c.Effect != 0.01 || c.EffectFrom != "" {
		t.Errorf("a quiet device lowers the effect to %g (%s)", c.Effect, c.EffectFrom)
	}
}

// made writes the lab as a run directory.
func (l *lab) made(t *testing.T, runs, sweep string, at time.Time) *results.Run {
	t.Helper()
	run, err := results.Create(runs, sweep, results.RunMeta{Version: "0.5"}, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WritePlan(l.plan, nil); err != nil {
		t.Fatal(err)
	}
	var file []byte
	for _, r := range l.recs {
		r.Run = run.Meta.ID
		b, err := results.EncodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), "journal.jsonl"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	return run
}

func TestFloorsAreKept(t *testing.T) {
	runs := t.TempDir()
	if f, err := ReadFloors(runs); err != nil || len(f) != 0 {
		t.Fatalf("without a folder: %v, %v", f, err)
	}
	key := FloorKey{"desk", "iperf.to", "default", "throughput"}
	ten := itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100, 99, 100}).made(t, runs, "aa", t0)
	said, err := KeepNoise(ten, nil)
	if err != nil || len(said) != 1 || !strings.HasPrefix(said[0], "desk, iperf.to.default throughput: noise floor ±") {
		t.Fatalf("%q, %v", said, err)
	}
	read := func() Floor {
		t.Helper()
		f, err := ReadFloors(runs)
		if err != nil {
			t.Fatal(err)
		}
		return f[key]
	}
	if f := read(); f.Run != ten.Name() || f.Boots != 10 || f.Date != "2026-11-30" || f.Kernel != "cfs" || f.HalfWidth < 0.008 {
		t.Errorf("%+v", f)
	}
	fewer := itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100}).made(t, runs, "aa", t0.Add(48*time.Hour))
	if _, err := KeepNoise(fewer, nil); err != nil || read().Run != ten.Name() {
		t.Errorf("8 boots replace 10: %+v, %v", read(), err)
	}
	newer := itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100, 99, 100}).made(t, runs, "aa", t0.Add(72*time.Hour))
	if _, err := KeepNoise(newer, nil); err != nil || read().Run != newer.Name() {
		t.Errorf("the newer run of as many boots does not count: %+v, %v", read(), err)
	}
	if said, err := KeepNoise(pair(throughput(), around(100, 5), around(103, 5)).made(t, runs, "night", t0), nil); err != nil || said != nil {
		t.Errorf("a run of two kernels: %q, %v", said, err)
	}
	path := filepath.Join(runs, FloorsFolder, "desk.json")
	if err := os.WriteFile(path, []byte("{torn"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err := ReadFloors(runs); err == nil || !strings.Contains(err.Error(), path) || len(f) != 0 {
		t.Errorf("a torn file: %v, %v", f, err)
	}
	if _, err := KeepNoise(newer, nil); err == nil {
		t.Error("a torn file is written over")
	}
}

// on makes all boots those of a machine with this serial number.
func (l *lab) on(serial string) *lab {
	for i := range l.recs {
		if b := l.recs[i].Boot; b != nil {
			b.Record.Identity = &targets.Identity{Family: "x86", Product: "OptiPlex 7010", Serial: serial, UUID: "4c4c4544-0048-3210-804b-" + serial + "00000"}
		}
	}
	return l
}

// A noise floor belongs to a machine, not to its name.
func TestFloorOfAnotherMachine(t *testing.T) {
	runs := t.TempDir()
	noisy := []float64{100, 108, 92, 104, 100, 96, 108, 100, 92, 100}
	if _, err := KeepNoise(itself(noisy).on("7HJ2K01").made(t, runs, "aa", t0), nil); err != nil {
		t.Fatal(err)
	}
	judged := func(serial string) Comparison {
		f, err := ReadFloors(runs)
		if err != nil {
			t.Fatal(err)
		}
		return judge1(t, pair(throughput(), around(100, 5), around(103, 5)).on(serial), Options{Floors: f})
	}
	if c := judged("7HJ2K01"); c.Effect < 0.03 || c.EffectFrom == "" {
		t.Errorf("on the same machine: effect %g from %q", c.Effect, c.EffectFrom)
	}
	c := judged("9XX4Z02")
	if c.Effect != 0.01 || c.EffectFrom != "" || !slices.ContainsFunc(c.Findings, func(f results.Finding) bool { return f.Rule == "noise floor of another machine" }) {
		t.Errorf("on another one: effect %g from %q, %+v", c.Effect, c.EffectFrom, c.Findings)
	}
	few := itself([]float64{100, 101, 99, 100.5, 100, 99.5, 101, 100}).on("9XX4Z02").made(t, runs, "aa", t0)
	if _, err := KeepNoise(few, nil); err != nil {
		t.Fatal(err)
	}
	if c := judged("9XX4Z02"); c.EffectFrom == "" {
		t.Errorf("an A/A run on this machine does not replace the other's: %+v", c.Findings)
	}
}
