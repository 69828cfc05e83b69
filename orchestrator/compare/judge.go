package compare

import (
	"fmt"
	"math"
	"slices"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// judging is one Judge at work.
type judging struct {
	run        string
	state      *results.State
	o          Options
	rules      stats.Rules
	primary    primaries
	strata     map[int]int // of sessions, by their number
	targets    map[string]results.PlannedTarget
	planned    map[results.Cell]results.PlannedCell
	hardBoots  map[string][]*results.Found // by target: hard findings about one boot
	tally      map[[2]string]tallied       // by target and kernel
	familySize int
}

// claim is a comparison on its way to a verdict.
type claim struct {
	*Comparison
	a, b side
	x, y stats.Sample // of a, of b
	each string       // what the sides are: "kernel", "half", "run"
	// spoilt by a hard finding: the verdict is invalid.
	spoilt string
	// hold says why nothing may be claimed whatever the numbers say, and what to
	// do about it.
	hold, remedy string
	unproven     bool         // that is what holds it
	holmLeast    stats.Number // the smallest p that these boots could give, within the family
}

// Judge makes the claims about a run from its state. The run is named in the
// commands that it proposes.
func Judge(run string, s *results.State, o Options) *Judgement {
	j := newJudging(run, s, o)
	out := &Judgement{Rules: j.rules, Comparisons: []Comparison{}, Findings: o.Findings}
	gs := groups(s)
	var claims []*claim
	for _, g := range gs {
		claims = append(claims, j.group(g)...)
	}
	j.familySize = family(claims)
	out.Family = j.familySize
	for _, c := range claims {
		j.conclude(c)
	}
	out.Notes = append(j.notes(gs, claims), j.primary.unused()...)
	out.Worth = j.worth(claims)
	if !s.Plan.Design.NoiseFloor {
		var notes []string
		out.Overall, notes = j.overall(claims)
		out.Notes = append(out.Notes, notes...)
	}
	for _, c := range claims {
		out.Comparisons = append(out.Comparisons, *c.Comparison)
	}
	return out
}

func newJudging(run string, s *results.State, o Options) *judging {
	d := s.Plan.Design
	j := &judging{run: run, state: s, o: o, rules: o.Rules, strata: strata(s.Model), tally: tally(s.Model), targets: map[string]results.PlannedTarget{},
		planned: map[results.Cell]results.PlannedCell{}, hardBoots: map[string][]*results.Found{},
		primary: primaries{design: d, used: map[string]bool{}}}
	if j.rules == (stats.Rules{}) {
		j.rules = stats.Defaults()
		if d.HalfWidth > 0 {
			j.rules.HalfWidth = d.HalfWidth
		}
		if d.Effect > 0 {
			j.rules.Effect = d.Effect
		}
	}
	for _, t := range s.Plan.Targets {
		j.targets[t.Name] = t
	}
	for _, c := range s.Plan.Cells {
		j.planned[c.Cell] = c
	}
	for i := range o.Findings {
		if f := &o.Findings[i]; f.Hard && f.Boot != 0 {
			j.hardBoots[f.Target] = append(j.hardBoots[f.Target], f)
		}
	}
	return j
}

// group makes the claims about one group: every kernel beside the baseline, or
// in an A/A run beside itself.
func (j *judging) group(g *group) []*claim {
	var out []*claim
	for _, k := range g.kernels {
		aa := j.state.Plan.Design.NoiseFloor
		base := g.against(k)
		if aa {
			base = k
		}
		if k == base && !aa {
			continue
		}
		key := Key{g.target, g.workload, g.scenario, k, base}
		cells := [2]results.Cell{g.cell(base), g.cell(k)}
		soft := j.trialFindings(cells)
		for _, m := range metricsOf(j.state, cells[1], cells[0]) {
			if m.Better == workloads.Informative {
				continue
			}
			a, b := j.side(cells[0], m.Name), j.side(cells[1], m.Name)
			if aa {
				a, b = halves(a)
			}
			c := j.claim(key, m, a, b)
			if c.numbers() {
				c.Comparison.Findings = append(c.Comparison.Findings, soft...)
			}
			if aa {
				c.each = "half"
			} else {
				j.inOrder(c)
			}
			c.unsteady()
			if c.Primary && !aa && c.matters() {
				c.Comparison.Moved = j.moved(cells, m)
			}
			out = append(out, c)
		}
	}
	return out
}

// numbers says that both sides have figures, beside which a warning can stand.
func (c *claim) numbers() bool { return len(c.a.boots) > 0 && len(c.b.boots) > 0 }

// matters says that there is a difference to speak of, shown or not.
func (c *claim) matters() bool {
	if c.Scale == stats.Difference {
		return c.Change.OK() && c.Change.Value != 0
	}
	return c.Change.OK() && math.Abs(math.Log1p(c.Change.Value)) >= math.Log1p(c.Effect)
}

// claim compares two sides and finds what stands against a verdict.
func (j *judging) claim(key Key, m workloads.Metric, a, b side) *claim {
	c := &claim{Comparison: &Comparison{Key: key, Metric: m, Primary: j.primary.is(key.Workload, key.Scenario, m)}, a: a, b: b}
	c.Comparison.Holm, c.each = stats.Missing("not of the family"), "kernel"
	c.x, c.y = samples(&a, &b)
	c.Comparison.Comparison = stats.Compare(c.x, c.y)
	c.Base, c.Value = c.Level[0], c.Level[1]
	if !c.Base.OK() {
		c.Base = middle(&a, c.x)
	}
	if !c.Value.OK() {
		c.Value = middle(&b, c.y)
	}
	j.effect(c)
	j.findings(c)
	c.Within = within(&a, &b)
	j.holds(c)
	return c
}

// effect is the smallest effect of interest: never below the device's own noise.
func (j *judging) effect(c *claim) {
	c.Effect = j.rules.Effect
	f, ok := j.o.Floors[FloorKey{c.Target, c.Workload, c.Scenario, c.Metric.Name}]
	if ok && f.HalfWidth > c.Effect && !j.state.Plan.Design.NoiseFloor {
		if why := f.elsewhere(identity(j.state.Model, c.Target)); why != "" {
			c.soft("noise floor of another machine", fmt.Sprintf("the noise floor of %s was measured on another machine and does not count: %s", c.Target, why),
				fmt.Sprintf("A/A run %s of %s", f.Run, f.Date), "make an A/A run on this one")
			return
		}
		c.Effect = f.HalfWidth
		c.EffectFrom = fmt.Sprintf("A/A run %s of %s, kernel %s, %d boots", f.Run, f.Date, f.Kernel, f.Boots)
	}
}

// findings takes over what the validity rules say of either side or the pair.
func (j *judging) findings(c *claim) {
	for i := range j.o.Findings {
		f := &j.o.Findings[i]
		if !f.About(c.b.cell, c.a.cell.Kernel) || f.Metric != "" && f.Metric != c.Metric.Name || !f.Hard && !c.numbers() {
			continue
		}
		said := f.Finding
		if f.Kernel != "" && f.Against == "" && c.a.cell.Kernel != c.b.cell.Kernel {
			said.Text = f.Kernel + ": " + f.Text
		}
		c.Comparison.Findings = append(c.Comparison.Findings, said)
		// One about a boot, or counted over trials, took its values out already.
		if f.Hard && f.Boot == 0 && f.Trials == 0 && c.spoilt == "" {
			c.spoilt = said.Text
		}
	}
	for _, s := range []*side{&c.a, &c.b} {
		c.leftOut(s)
	}
}

// leftOut tells what of a side did not enter: the rest may be the better part.
func (c *claim) leftOut(s *side) {
	if s.left > 0 {
		c.soft("unproven boots", fmt.Sprintf("%s of %s left out: nobody proved which kernel ran", plural.Of(s.left, "boot"), s.who()), "", "")
	}
	if len(s.spoilt) > 0 {
		c.soft("spoilt boots", fmt.Sprintf("%s of %s left out for a hard finding", plural.Of(len(s.spoilt), "boot"), s.who()), fmt.Sprintf("boots %v", s.spoilt), "")
	}
	if len(s.boots) == 0 {
		return
	}
	if s.bootsFailed > 0 {
		c.soft("boots failed", fmt.Sprintf("%s boots in some blocks only: its figures are of the boots that came up", s.who()),
			fmt.Sprintf("%s of %d failed", plural.Of(s.bootsFailed, "block"), s.blocks), "every block's boot is good")
	}
	if s.lost > 0 {
		c.soft("trials missing", fmt.Sprintf("not every trial of %s counts: its figures are of those that ended well", s.who()),
			fmt.Sprintf("%d of %d without a value: %s", s.lost, s.trials, s.lostWhy), "every trial gives a value")
	}
}

func (c *claim) soft(rule, text, evidence, threshold string) {
	c.Comparison.Findings = append(c.Comparison.Findings, results.Finding{Rule: rule, Text: text, Evidence: evidence, Threshold: threshold})
}

// holds finds what forbids a verdict although there are numbers.
func (j *judging) holds(c *claim) {
	t := j.targets[c.Target]
	switch {
	case len(c.a.boots) == 0 || len(c.b.boots) == 0:
	case t.HostBound:
		c.hold = fmt.Sprintf("NOT COMPARABLE, the figures of %s depend on the controller's load", c.Target)
	case c.a.unproven == "" && c.b.unproven == "":
	case c.a.declared && c.b.declared: // on somebody's word, which the sentence says
	case c.a.unproven == "" || c.a.unproven == c.b.unproven:
		c.hold, c.unproven = c.b.unproven, true
	case c.b.unproven == "":
		c.hold, c.unproven = c.a.unproven, true
	default:
		c.hold, c.unproven = fmt.Sprintf("%s: %s; %s: %s", c.a.who(), c.a.unproven, c.b.who(), c.b.unproven), true
	}
}

// trialFindings are the soft findings of the trials of two cells, a rule once.
func (j *judging) trialFindings(cells [2]results.Cell) []results.Finding {
	var out []results.Finding
	n, all := map[string]int{}, 0
	for i, c := range cells {
		if i == 1 && c == cells[0] {
			break
		}
		for _, b := range j.state.Model.ByBoot(c) {
			for _, a := range b.Trials {
				all++
				for _, f := range a.Findings {
					if n[f.Rule]++; n[f.Rule] == 1 {
						out = append(out, f)
					}
				}
			}
		}
	}
	known := func(f results.Finding) bool { // the validity rules gathered it already
		return slices.ContainsFunc(j.o.Findings, func(x results.Found) bool {
			return x.Rule == f.Rule && x.About(cells[1], cells[0].Kernel)
		})
	}
	out = slices.DeleteFunc(out, known)
	for i := range out {
		if n[out[i].Rule] > 1 {
			out[i].Text += fmt.Sprintf(" (%d findings in %d trials)", n[out[i].Rule], all)
		}
	}
	return out
}

// family corrects the primary comparisons that may become claims for each other
// and returns how many they are.
func family(claims []*claim) int {
	var in []*claim
	for _, c := range claims {
		if c.Primary && c.spoilt == "" && c.hold == "" && c.P.OK() {
			in = append(in, c)
		}
	}
	cases := make([]stats.Case, len(in))
	for i, c := range in {
		cases[i] = c.asCase()
	}
	for i, k := range stats.Family(cases) {
		in[i].Comparison.Holm, in[i].holmLeast = k.Holm, k.HolmAttainable
	}
	return len(in)
}
