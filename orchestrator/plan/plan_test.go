package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/boot"
	"kernsweep/workloads"
)

// still is a workload that takes a declared time and needs what it is told.
type still struct {
	d     time.Duration
	needs workloads.Needs
}

func (s still) Check() error                              { return nil }
func (s still) Needs() workloads.Needs                    { return s.needs }
func (s still) Metrics() []workloads.Metric               { return nil }
func (s still) Estimate() time.Duration                   { return s.d }
func (s still) Run(context.Context, *workloads.Env) error { return nil }
func (s still) Parse(fs.FS) (workloads.Parsed, error)     { return workloads.Parsed{}, nil }

// imageBoot needs an image, as boot loaders do.
type imageBoot struct{}

func (imageBoot) Boot(context.Context, *targets.Target, targets.Kernel) error { return nil }
func (imageBoot) Traits() targets.BootTraits                                  { return targets.BootTraits{Image: true} }

// onceBoot starts a kernel once, as GRUB's one-shot entry does.
type onceBoot struct{ imageBoot }

func (onceBoot) Traits() targets.BootTraits { return targets.BootTraits{Image: true, Returns: true} }

// unused is a driver that a plan never calls.
type unused struct{}

func (unused) Set(context.Context, bool) error                  { panic("a plan contacts nothing") }
func (unused) Open(context.Context) (io.ReadWriteCloser, error) { panic("a plan contacts nothing") }

func lab(nTargets, nKernels, nWorkloads int) *config.Lab {
	l := &config.Lab{}
	s := &config.Sweep{Name: "s", Boots: 4, Repeat: 2, Warmup: 1}
	m := config.Matrix{}
	for i := range nTargets {
		t := &config.Target{Target: targets.Target{Name: fmt.Sprintf("t%d", i), Arch: "amd64", Boot: imageBoot{}}, BootKind: "image", Agent: "auto"}
		l.Targets = append(l.Targets, t)
		m.Targets = append(m.Targets, t.Name)
	}
	for i := range nKernels {
		k := &config.Kernel{Name: fmt.Sprintf("k%d", i), Images: []config.Image{{For: "amd64"}}}
		l.Kernels = append(l.Kernels, k)
		m.Kernels = append(m.Kernels, k.Name)
	}
	m.Baseline = "k0"
	for i := range nWorkloads {
		w := &config.Workload{Kind: "still", Name: fmt.Sprintf("w%d", i), Scenarios: []config.Scenario{{Name: "default", Run: still{d: time.Second}}}}
		l.Workloads = append(l.Workloads, w)
		m.Workloads = append(m.Workloads, w.ID())
	}
	s.Matrices = []config.Matrix{m}
	l.Sweeps = []*config.Sweep{s}
	return l
}

func expand(t *testing.T, l *config.Lab, seed int64, f Filter) *Plan {
	t.Helper()
	p, err := Expand(l, l.Sweeps[0], seed, f, History{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSameSeedSamePlan(t *testing.T) {
	l := lab(3, 4, 3)
	a, _ := json.Marshal(expand(t, l, 7, Filter{}))
	b, _ := json.Marshal(expand(t, l, 7, Filter{}))
	if !bytes.Equal(a, b) {
		t.Fatal("one seed gave two plans")
	}
	c, _ := json.Marshal(expand(t, l, 8, Filter{}))
	if bytes.Equal(a, c) {
		t.Fatal("another seed gave the same plan")
	}
}

func TestFilterKeepsTheOrderOfTheRest(t *testing.T) {
	l := lab(3, 3, 2)
	all := expand(t, l, 7, Filter{})
	one := expand(t, l, 7, Filter{Targets: []string{"t1"}})
	if len(one.Lanes) != 1 || fmt.Sprint(one.Lanes[0]) != fmt.Sprint(all.Lanes[1]) {
		t.Fatal("leaving targets out reordered lane t1")
	}
}

func TestEveryBlockHasEveryKernelOnce(t *testing.T) {
	p := expand(t, lab(1, 5, 1), 3, Filter{})
	blocks := map[int][]string{}
	for _, b := range p.Lanes[0].Boots {
		blocks[b.Block] = append(blocks[b.Block], b.Kernel)
	}
	if len(blocks) != 4 {
		t.Fatalf("%d blocks, want 4", len(blocks))
	}
	for n, ks := range blocks {
		slices.Sort(ks)
		if len(slices.Compact(ks)) != 5 {
			t.Errorf("block %d has kernels %v", n, ks)
		}
	}
}

func TestEvenBlocksMirrorTheOddOnes(t *testing.T) {
	p := expand(t, lab(1, 2, 1), 3, Filter{})
	var ks []string
	for _, b := range p.Lanes[0].Boots {
		ks = append(ks, b.Kernel)
	}
	for i := 0; i+3 < len(ks); i += 4 {
		if ks[i] != ks[i+3] || ks[i+1] != ks[i+2] {
			t.Errorf("boots %v are not ABBA", ks[i:i+4])
		}
	}
}

func TestReasonsForNA(t *testing.T) {
	l := lab(1, 3, 1)
	l.Kernels[1].Images[0].For = "mipsle"
	l.Kernels[2].Release = "2.6.30.5*"
	l.Workloads[0].Scenarios = []config.Scenario{
		{Name: "shell", Run: still{d: time.Second}},
		{Name: "agent", Run: still{d: time.Second, needs: workloads.Needs{GoAgent: "float programs"}}},
	}
	p := expand(t, l, 1, Filter{})
	want := map[results.Cell]string{
		{Target: "t0", Kernel: "k1", Workload: "still.w0", Scenario: "shell"}: "no image for t0 (amd64)",
		{Target: "t0", Kernel: "k1", Workload: "still.w0", Scenario: "agent"}: "no image for t0 (amd64)",
		{Target: "t0", Kernel: "k2", Workload: "still.w0", Scenario: "agent"}: "2.6.30.5 is older than 3.2",
	}
	if len(p.NA) != len(want) {
		t.Errorf("%d n/a cells, want %d: %v", len(p.NA), len(want), p.NA)
	}
	for _, n := range p.NA {
		if !strings.Contains(n.Reason, want[n.Cell]) || want[n.Cell] == "" {
			t.Errorf("%s: %q, want %q", n.Cell, n.Reason, want[n.Cell])
		}
	}
}

func TestOneBootTargetsAreAnnounced(t *testing.T) {
	l := lab(1, 1, 1)
	l.Targets[0].Boot, l.Targets[0].BootKind = new(boot.None), "none"
	p := expand(t, l, 1, Filter{})
	if !strings.Contains(strings.Join(p.Warnings, "\n"), "one boot per run") {
		t.Errorf("warnings %q do not mention the single boot", p.Warnings)
	}
}

// What a target lacks is said once a lane, before anybody leaves.
func TestWhatATargetLacksIsAnnounced(t *testing.T) {
	full := targets.Target{Boot: imageBoot{}, Power: unused{}, Console: unused{}}
	for name, c := range map[string]struct {
		change func(*config.Target)
		want   string
	}{
		"nothing":       {func(*config.Target) {}, ""},
		"power":         {func(t *config.Target) { t.Power, t.Console = nil, nil }, "no power driver: a hang here ends this lane\ntarget t0: no console: a hang and a network failure cannot be told apart"},
		"power, SysRq":  {func(t *config.Target) { t.Power = nil }, "no power driver: a hang here ends this lane, unless magic SysRq over its console still works"},
		"console":       {func(t *config.Target) { t.Console = nil }, "no console: a hang and a network failure cannot be told apart"},
		"kernel":        {func(t *config.Target) { t.KnownGood = "" }, "no known_good kernel: after a failed boot nothing brings it back"},
		"kernel, GRUB":  {func(t *config.Target) { t.KnownGood, t.Boot = "", onceBoot{} }, "no known_good kernel: after a failed boot it is restarted, and what comes up is taken as it is"},
		"its image":     {func(t *config.Target) { t.KnownGood = "bare" }, "its known_good kernel bare has no image for it: after a failed boot nothing brings it back"},
		"nothing, GRUB": {func(t *config.Target) { t.Boot = onceBoot{} }, ""},
	} {
		l := lab(1, 2, 2)
		l.Kernels = append(l.Kernels, &config.Kernel{Name: "bare"})
		x := l.Targets[0]
		full.Name, full.Arch = x.Name, x.Arch
		x.Target, x.KnownGood = full, "k0"
		c.change(x)
		want := c.want
		if want != "" {
			want = "target t0: " + want
		}
		if got := strings.Join(expand(t, l, 1, Filter{}).Warnings, "\n"); got != want {
			t.Errorf("without %s: %q, want %q", name, got, want)
		}
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	l := lab(1, 1, 1)
	for _, f := range []Filter{{Targets: []string{"x"}}, {Kernels: []string{"x"}}, {Workloads: []string{"x"}}} {
		if _, err := Expand(l, l.Sweeps[0], 1, f, History{}); err == nil || !strings.Contains(err.Error(), `"x"`) {
			t.Errorf("filter %v: error %v", f, err)
		}
	}
}

func TestEstimateUsesHistory(t *testing.T) {
	l := lab(1, 1, 1)
	c := results.Cell{Target: "t0", Kernel: "k0", Workload: "still.w0", Scenario: "default"}
	p, err := Expand(l, l.Sweeps[0], 1, Filter{}, History{
		Boot: map[string]time.Duration{"t0": 10 * time.Second}, Trial: map[results.Cell]time.Duration{c: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	if want := 4 * (10 + 3*5) * time.Second; p.Estimate() != want {
		t.Errorf("estimate %v, want %v", p.Estimate(), want)
	}
}

func TestTooOldForGo(t *testing.T) {
	for release, old := range map[string]bool{"2.6.30.5*": true, "3.1*": true, "3.2.0": false, "3.10*": false,
		"6.1.0-50": false, "*": false, "": false, "2.6*": true, "v5": false, "3.*": false} {
		if got := tooOldForGo(release) != ""; got != old {
			t.Errorf("%q: too old %v, want %v", release, got, old)
		}
	}
}

func BenchmarkExpand10kCells(b *testing.B) {
	l := lab(20, 10, 50)
	for b.Loop() {
		p, err := Expand(l, l.Sweeps[0], 1, Filter{}, History{})
		if err != nil || p.Trials() != 10_000*3*4 {
			b.Fatal(err, p.Trials())
		}
	}
}
