package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets/boot"
	"kernsweep/workloads"
)

// rated is a workload with a primary metric, another one, and one that is never
// compared.
type rated struct{ still }

func (rated) Metrics() []workloads.Metric {
	return []workloads.Metric{{Name: "rate", Better: workloads.HigherIsBetter, Primary: true}, {Name: "loss", Better: workloads.LowerIsBetter}, {Name: "version", Better: workloads.Informative}}
}

// ratedLab is lab with such workloads, of two scenarios each.
func ratedLab(nTargets, nKernels, nWorkloads int) *config.Lab {
	l := lab(nTargets, nKernels, nWorkloads)
	for _, w := range l.Workloads {
		w.Scenarios = []config.Scenario{{Name: "j1", Run: rated{still{d: time.Second}}}, {Name: "j3", Run: rated{still{d: time.Second}}}}
	}
	for _, t := range l.Targets {
		t.Power, t.Console, t.KnownGood = unused{}, unused{}, "k0" // nothing to warn of
	}
	l.Sweeps[0].Boots = 5
	return l
}

func orderOf(l Lane) string {
	var out []string
	for _, b := range l.Boots {
		out = append(out, fmt.Sprintf("%s%d", b.Kernel, b.Block))
	}
	return strings.Join(out, " ")
}

// All blocks of one kernel, then those of the next; each block's cells in the
// order that it has for every kernel.
func TestBlockedOrder(t *testing.T) {
	l := ratedLab(1, 3, 2)
	l.Sweeps[0].Order = config.Blocked
	seen := map[string]bool{}
	for seed := range int64(60) {
		p := expand(t, l, seed, Filter{})
		lane := p.Lanes[0]
		cells := map[int]string{}
		for i, b := range lane.Boots {
			if b.Block != i%5+1 || b.Kernel != lane.Boots[i/5*5].Kernel {
				t.Fatalf("boots %s", orderOf(lane))
			}
			var names []string
			for _, s := range b.Trials {
				names = append(names, s.Workload+s.Scenario)
			}
			if text := strings.Join(names, " "); cells[b.Block] == "" {
				cells[b.Block] = text
			} else if cells[b.Block] != text {
				t.Errorf("block %d: %s, with another kernel %s", b.Block, cells[b.Block], text)
			}
		}
		seen[orderOf(lane)] = true
		if w := strings.Join(p.Warnings, "\n"); !strings.Contains(w, "no verdict can tell the two apart") || p.Design.Order != config.Blocked {
			t.Errorf("warnings %q, order %s", w, p.Design.Order)
		}
	}
	if len(seen) != 6 {
		t.Errorf("60 seeds gave %d of 6 orders", len(seen))
	}
}

// Two kernels take their turns as ABBA or BAAB, by the seed.
func TestTwoKernelsBeginBySeed(t *testing.T) {
	seen := map[string]int{}
	for seed := range int64(40) {
		lane := expand(t, ratedLab(1, 2, 1), seed, Filter{}).Lanes[0]
		first := ""
		for _, b := range lane.Boots[:4] {
			first += b.Kernel
		}
		seen[first]++
	}
	if len(seen) != 2 || seen["k0k1k1k0"] < 8 || seen["k1k0k0k1"] < 8 {
		t.Errorf("40 seeds: %v", seen)
	}
}

// The order of workloads is drawn anew for each block.
func TestWorkloadsAreShuffledPerBlock(t *testing.T) {
	p := expand(t, ratedLab(1, 2, 4), 1, Filter{})
	seen := map[string]bool{}
	for _, b := range p.Lanes[0].Boots {
		seen[fmt.Sprint(b.Trials[0].Cell.Workload, b.Trials[len(b.Trials)-1].Cell.Workload)] = true
	}
	if len(seen) < 3 {
		t.Errorf("five blocks begin and end alike: %v", seen)
	}
}

func TestAutoPlansUpToItsBound(t *testing.T) {
	l := ratedLab(1, 2, 1)
	l.Sweeps[0].Auto, l.Sweeps[0].Boots, l.Sweeps[0].HalfWidth = true, 12, 0.02
	p := expand(t, l, 1, Filter{})
	want := results.Design{Order: "interleaved", Auto: true, MinBoots: 5, MaxBoots: 12, HalfWidth: 0.02}
	if fmt.Sprint(p.Design) != fmt.Sprint(want) || p.Lanes[0].Rounds() != 12 || p.Family != 2 || len(p.Warnings) > 0 {
		t.Errorf("%+v, %d blocks, %d comparisons, %q", p.Design, p.Lanes[0].Rounds(), p.Family, p.Warnings)
	}
	var text strings.Builder
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"about 19m to 46m (the longest", "boots 5 to 12 times", "±2 % or narrower", "  block 5\n", "  block 6 (if needed)\n"} {
		if !strings.Contains(text.String(), s) {
			t.Errorf("%q is missing in:\n%s", s, text.String())
		}
	}
	l.Sweeps[0].Boots = 5 // no block that it could leave out
	text.Reset()
	if err := expand(t, l, 1, Filter{}).WriteText(&text); err != nil || !strings.Contains(text.String(), "about 19m (the longest") || !strings.Contains(text.String(), "boots 5 times") {
		t.Errorf("at most as many boots as at least: %v\n%s", err, text.String())
	}
	l.Sweeps[0].Boots, l.Sweeps[0].Matrices[0].Workloads = 12, nil
	for i := range 8 { // 16 comparisons: 5 boots could decide none of them
		l.Workloads = append(l.Workloads, &config.Workload{Kind: "more", Name: fmt.Sprint(i), Scenarios: l.Workloads[0].Scenarios})
		l.Sweeps[0].Matrices[0].Workloads = append(l.Sweeps[0].Matrices[0].Workloads, fmt.Sprintf("more.%d", i))
	}
	if p = expand(t, l, 1, Filter{}); p.Family != 16 || p.Design.MinBoots != 6 || len(p.Warnings) > 0 {
		t.Errorf("%d comparisons, at least %d boots, %q", p.Family, p.Design.MinBoots, p.Warnings)
	}
}

// What so many comparisons need is said before the night, not after it.
func TestFamilyAgainstBoots(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*config.Lab, *config.Sweep)
		family int
		want   string
	}{
		"it fits":     {func(*config.Lab, *config.Sweep) {}, 4, ""},
		"three boots": {func(_ *config.Lab, s *config.Sweep) { s.Boots = 3 }, 4, "3 boots of each kernel: every verdict will be inconclusive, since fewer than 4 on each side show nothing"},
		"one boot":    {func(_ *config.Lab, s *config.Sweep) { s.Boots = 1 }, 4, "1 boot of each kernel: every verdict will be inconclusive, since fewer than 4 on each side show nothing"},
		"four boots":  {func(_ *config.Lab, s *config.Sweep) { s.Boots = 4 }, 4, "4 primary comparisons with 4 boots of each kernel: none can reach p = 0.05 after correction for their number; it needs 5 boots, or at most 1 comparison: declare what the sweep is to decide, primary = […]"},
		"declared":    {func(_ *config.Lab, s *config.Sweep) { s.Boots, s.Primary = 4, []string{"still.w0.j1"} }, 1, ""},
		"another one": {func(_ *config.Lab, s *config.Sweep) { s.Primary = []string{"still.w0:loss", "still.w1.j3"} }, 3, ""},
		"not in here": {func(_ *config.Lab, s *config.Sweep) { s.Primary = []string{"still.w7"} }, 0, "none of the declared primary comparisons is in this plan: figures will have intervals and no verdict"},
		"one kernel":  {func(_ *config.Lab, s *config.Sweep) { s.Matrices[0].Kernels, s.Boots = []string{"k0"}, 1 }, 0, ""},
		"no baseline": {func(l *config.Lab, _ *config.Sweep) {
			l.Kernels[0].Images[0].For = "mipsle"
			l.Targets[0].KnownGood = "k1"
		}, 0, ""},
		"method none":  {func(l *config.Lab, _ *config.Sweep) { l.Targets[0].Boot = new(boot.None) }, 0, `target t0: boot method "image" starts nothing: one boot per run, and the boots after it are skipped`},
		"three of two": {func(l *config.Lab, s *config.Sweep) { l.Sweeps[0].Matrices = append(s.Matrices, s.Matrices[0]) }, 4, ""},
	} {
		l := ratedLab(1, 2, 2)
		c.change(l, l.Sweeps[0])
		p := expand(t, l, 1, Filter{})
		if got := strings.Join(p.Warnings, "\n"); got != c.want || p.Family != c.family {
			t.Errorf("%s: %d comparisons, %q; want %d, %q", name, p.Family, got, c.family, c.want)
		}
	}
}

func TestChanges(t *testing.T) {
	l := ratedLab(1, 3, 1)
	with := func(c Changes) *Plan {
		t.Helper()
		p, err := c.Expand(l, l.Sweeps[0], 1, Filter{}, History{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := with(Pilot()); p.Blocks != 3 || p.Repeat != 5 || p.Lanes[0].Rounds() != 3 || len(p.Lanes[0].Boots[0].Trials) != 2*6 {
		t.Errorf("pilot: %d boots, %d trials", p.Blocks, p.Repeat)
	} else if got := strings.Join(p.Warnings, "\n"); got != "a pilot: 3 boots of each kernel decide nothing; kernsweep plan s then proposes boots and repeat" {
		t.Errorf("a pilot warns: %q", got)
	}
	if p := with(Changes{Auto: true}); !p.Design.Auto || p.Design.MaxBoots != 15 || p.Blocks != 15 {
		t.Errorf("auto: %+v", p.Design)
	}
	p := with(Changes{NoiseFloor: true})
	if p.Blocks != 10 || len(p.Lanes[0].Boots) != 10 || !p.Design.NoiseFloor || p.Family != 2 || len(p.Warnings) > 0 ||
		slices.ContainsFunc(p.Lanes[0].Boots, func(b Boot) bool { return b.Kernel != "k0" }) {
		t.Errorf("noise floor: %s, %+v, %q", orderOf(p.Lanes[0]), p.Design, p.Warnings)
	}
	if p := with(Changes{NoiseFloor: true, Boots: 3}); p.Blocks != 6 || !strings.Contains(strings.Join(p.Warnings, ""), "3 boots of each kernel: every") {
		t.Errorf("small noise floor: %d, %q", p.Blocks, p.Warnings)
	}
	l.Sweeps[0].Auto, l.Sweeps[0].Boots = true, 15
	if p := with(Changes{NoiseFloor: true}); p.Design.Auto || p.Blocks != 10 {
		t.Errorf("noise floor of auto: %+v", p.Design)
	}
	if p := with(Changes{Boots: 7, Repeat: 1}); p.Design.Auto || p.Blocks != 7 || p.Repeat != 1 {
		t.Errorf("fixed: %+v", p.Design)
	}
	if l.Sweeps[0].Boots != 15 || len(l.Sweeps[0].Matrices[0].Kernels) != 3 {
		t.Error("the sweep itself was changed")
	}
	l.Sweeps[0].Order, l.Sweeps[0].Auto = config.Blocked, false
	for _, c := range []Changes{{Auto: true}, {NoiseFloor: true}} {
		f := Filter{}
		if c.NoiseFloor {
			f.Kernels = []string{"k1"}
		}
		if _, err := c.Expand(l, l.Sweeps[0], 1, f, History{}); err == nil {
			t.Errorf("%+v with %+v is taken", c, f)
		}
	}
}

// The defaults of the two packages that cannot see each other.
func TestNarrowIsTheDefault(t *testing.T) {
	if d := new(results.Design); d.Narrow() != stats.Defaults().HalfWidth {
		t.Error(d.Narrow())
	}
}

// twoMatrices is a target whose workloads have different kernels and baselines.
func twoMatrices() *config.Lab {
	l := ratedLab(2, 3, 2)
	s := l.Sweeps[0]
	s.Matrices = []config.Matrix{
		{Targets: []string{"t0", "t1"}, Kernels: []string{"k0", "k1"}, Workloads: []string{"still.w0"}, Baseline: "k0"},
		{Targets: []string{"t0"}, Kernels: []string{"k2", "k1"}, Workloads: []string{"still.w1"}, Baseline: "k2"},
	}
	return l
}

func TestMoreBlocks(t *testing.T) {
	l := twoMatrices()
	p := expand(t, l, 1, Filter{})
	baseline := func(c results.Cell) string {
		return map[string]string{"still.w0": "k0", "still.w1": "k2"}[c.Workload]
	}
	more := func(a Addition) *Plan {
		t.Helper()
		out, err := p.More(l, a, History{}, baseline)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	kernels := func(l Lane) string { return strings.Join(l.kernels(l.cells(nil)), " ") }
	a := more(Addition{Blocks: 2, Session: 2})
	if len(a.Lanes) != 2 || a.Lanes[0].Rounds() != 2 || a.Lanes[0].Boots[0].Block != 6 || kernels(a.Lanes[0]) != "k0 k1 k2" || kernels(a.Lanes[1]) != "k0 k1" {
		t.Errorf("%s; %s", orderOf(a.Lanes[0]), orderOf(a.Lanes[1]))
	}
	if b := a.Lanes[0].Boots; b[0].Kernel != b[5].Kernel || b[1].Kernel != b[4].Kernel {
		t.Errorf("the second block does not mirror the first: %s", orderOf(a.Lanes[0]))
	}
	orders := map[string]bool{}
	for session := 2; session < 12; session++ {
		x := more(Addition{Blocks: 2, Session: session})
		if y := more(Addition{Blocks: 2, Session: session}); orderOf(x.Lanes[0]) != orderOf(y.Lanes[0]) {
			t.Fatal("one session has two orders")
		}
		orders[orderOf(x.Lanes[0])] = true
	}
	if len(orders) < 4 {
		t.Errorf("ten sessions have %d orders", len(orders))
	}
	b := more(Addition{Filter: Filter{Kernels: []string{"k1"}, Workloads: []string{"w1"}}, Blocks: 1, Session: 2})
	if len(b.Lanes) != 1 || kernels(b.Lanes[0]) != "k1 k2" || b.Lanes[0].Measured() != 2*2*2 {
		t.Errorf("the baseline did not come along: %+v", b.Lanes)
	}
	if _, err := p.More(l, Addition{Filter: Filter{Targets: []string{"x"}}, Blocks: 1}, History{}, baseline); err == nil {
		t.Error("a target that is not there")
	}
	p.Add(a)
	p.Add(b) // of blocks that are there already: nothing new
	if p.Lanes[0].Rounds() != 7 || len(p.Lanes[0].Boots) != 7*3 || p.highest() != 7 {
		t.Errorf("added: %s", orderOf(p.Lanes[0]))
	}
	if c := more(Addition{Blocks: 1, Session: 3}); c.Lanes[0].Boots[0].Block != 8 {
		t.Errorf("numbered on: %s", orderOf(c.Lanes[0]))
	}
	p.Without(map[string]int{"t0": 4})
	if p.Lanes[0].Rounds() != 6 || p.Lanes[1].Rounds() != 7 {
		t.Errorf("without what was enough: %s", orderOf(p.Lanes[0]))
	}
	l.Kernels = l.Kernels[:2]
	if _, err := p.More(l, Addition{Blocks: 1, Session: 3}, History{}, baseline); err == nil || !strings.Contains(err.Error(), "no kernel k2") {
		t.Errorf("a kernel that is gone: %v", err)
	}
}

// measured is a run of the plan in which rate says what each trial gave.
func measured(p *Plan, rate func(results.Slot) float64) *results.State {
	var recs []results.Record
	add := func(r results.Record) { r.Seq = len(recs) + 1; recs = append(recs, r) }
	add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			add(results.Record{Kind: results.KindBoot, Lane: l.Target, Boot: &results.Boot{Number: b.Number, Kernel: b.Kernel, Block: b.Block, Outcome: results.OK}})
			for _, s := range b.Trials {
				v := workloads.Value{Metric: rated{}.Metrics()[0], Value: rate(s)}
				add(results.Record{Kind: results.KindJudged, Lane: l.Target, Slot: &s, Attempt: 1, Outcome: results.OK, Parsed: &workloads.Parsed{Values: []workloads.Value{v}}})
			}
		}
	}
	return &results.State{Model: results.Load(recs)}
}

// A pilot of boots that differ by about 1 % and trials by about 0.5 %: the cell
// that is worse decides.
func TestProposal(t *testing.T) {
	l := ratedLab(1, 2, 1)
	pilot, err := Pilot().Expand(l, l.Sweeps[0], 1, Filter{}, History{})
	if err != nil {
		t.Fatal(err)
	}
	s := measured(pilot, func(s results.Slot) float64 {
		if s.Scenario == "j1" {
			return 100 + float64(s.Repeat%2)/1000
		}
		return 100 + float64(s.Block-2) + float64(s.Repeat%2-s.Repeat/3)/2
	})
	p := expand(t, l, 1, Filter{})
	got := p.Propose(l, "run-1", s, History{}, nil)
	if len(got) != 1 || got[0].Scenario != "j3" || got[0].Metric != "rate" || got[0].Boots < 6 || got[0].Repeat < 1 || !got[0].Reached {
		t.Fatalf("%+v", got)
	}
	if again := p.Propose(l, "run-2", s, History{}, got); len(again) != 0 {
		t.Errorf("a workload that has its proposal: %+v", again)
	}
	var text strings.Builder
	if err := p.WriteProposals(&text, got, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"±1 %, now 2 and 5\n", "still.w0.j3 rate on t0, from run-1: between boots ", fmt.Sprintf("boots = %d would give ±", got[0].Boots), "for all of it: repeat = "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "nothing to go by") {
		t.Error(text.String())
	}
	text.Reset()
	other := got[0]
	other.Workload = "still.gone"
	if err := p.WriteProposals(&text, []Proposal{other}, ""); err != nil || !strings.Contains(text.String(), "  still.w0: nothing to go by: ") {
		t.Errorf("a workload without figures is not named: %v\n%s", err, text.String())
	}
	text.Reset()
	if err := p.WriteProposals(&text, nil, "about 3m"); err != nil || !strings.Contains(text.String(), "kernsweep run s --pilot does (about 3m; --target and --kernel narrow it)") {
		t.Error(text.String(), err)
	}
	one := expand(t, l, 1, Filter{})
	one.Lanes[0].Boots = one.Lanes[0].Boots[:2] // a boot of each kernel
	if got := p.Propose(l, "run-3", measured(one, func(results.Slot) float64 { return 1 }), History{}, nil); len(got) != 0 {
		t.Errorf("one boot tells: %+v", got)
	}
}
