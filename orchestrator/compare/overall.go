package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/stats"
)

// leastBlocks of an overall figure: one block has no interval.
const leastBlocks = 2

// overall makes one figure for each target and kernel out of its primary
// comparisons, where there are several cells, and notes which kernels of a target
// cannot be ranked against each other.
func (j *judging) overall(claims []*claim) ([]Overall, []string) {
	type pair struct{ target, kernel, baseline string }
	members := map[pair][]*claim{}
	var order []pair
	for _, c := range claims {
		if !c.Primary || j.planned[c.a.cell].NA != "" && j.planned[c.b.cell].NA != "" {
			continue // what runs with neither kernel is not part of it
		}
		p := pair{c.Target, c.Kernel, c.Baseline}
		if members[p] == nil {
			order = append(order, p)
		}
		members[p] = append(members[p], c)
	}
	var out []Overall
	var notes []string
	sets := map[string]string{}  // cells of a target's first kernel
	figures := map[string]bool{} // targets that have one
	unlike := map[string]bool{}
	for _, p := range order {
		list := members[p]
		if len(list) < 2 {
			continue
		}
		o := Overall{Target: p.target, Kernel: p.kernel, Baseline: p.baseline}
		o.over(list, j.rules.MinBoots)
		out = append(out, o)
		figures[p.target] = figures[p.target] || o.Gain.OK()
		set := cellSet(list)
		if first, ok := sets[p.target]; ok && first != set {
			unlike[p.target] = true
		} else if !ok {
			sets[p.target] = set
		}
	}
	for _, target := range slices.Sorted(maps.Keys(unlike)) {
		if figures[target] {
			notes = append(notes, fmt.Sprintf("the overall figures of %s are over different cells for different kernels: they do not rank the kernels against each other", target))
		}
	}
	return out, notes
}

// cellSet are the cells that have values for both kernels.
func cellSet(list []*claim) string {
	var s []string
	for _, c := range list {
		if c.obstacle() == "" {
			s = append(s, c.Workload+"."+c.Scenario+":"+c.Metric.Name)
		}
	}
	slices.Sort(s)
	return strings.Join(s, " ") + " of " + list[0].Baseline
}

// obstacle says why a comparison cannot enter an overall figure; "": it can.
func (c *claim) obstacle() string {
	switch {
	case c.Verdict == stats.DidNotBoot, c.Verdict == stats.Invalid:
		return string(c.Verdict)
	case c.unproven:
		return "kernels not proven"
	case c.a.declared || c.b.declared:
		return "which boots of an import belong to one block is not known"
	case c.hold != "":
		return c.hold
	case !c.Change.OK():
		return "n/a (" + c.Change.Missing + ")"
	case c.Scale != stats.Ratio:
		return "a value is 0 or negative, and has no ratio"
	}
	return ""
}

// over fills in the figure: of each block the mean gain, every workload of equal
// weight, so that what the workloads of one boot share stays together. Of fewer
// blocks than least it claims nothing.
func (o *Overall) over(list []*claim, least int) {
	refuse := func(format string, args ...any) {
		m := stats.Missing(format, args...)
		o.Gain, o.Low, o.High = m, m, m
		o.Sentence = "no overall figure: " + m.Missing
	}
	for _, c := range list {
		if !slices.Contains(o.Workloads, c.Workload) {
			o.Workloads = append(o.Workloads, c.Workload)
		}
	}
	for _, c := range list {
		if why := c.obstacle(); why != "" {
			refuse("%s.%s cannot enter it: %s", c.Workload, c.Scenario, why)
			return
		}
	}
	v := stats.OverallOf(gainsOf(list))
	if o.Blocks = v.Blocks; o.Blocks < leastBlocks {
		refuse("%s in which every primary cell is valid for both kernels, need %d", plural.Of(o.Blocks, "block"), leastBlocks)
		return
	}
	o.Gain, o.Low, o.High = v.Gain, v.Low, v.High
	if !o.Gain.OK() || !o.Low.OK() || !o.High.OK() {
		refuse("the gains are too large to be averaged")
		return
	}
	p := min(places(o.Gain.Value), places(o.Low.Value), places(o.High.Value))
	o.Sentence = fmt.Sprintf("%s %s over %s (95 %% CI %s to %s %%; above 0 is better), %s", o.Kernel, percent(o.Gain.Value),
		plural.Of(len(o.Workloads), "workload"), digits(o.Low.Value, p), digits(o.High.Value, p), plural.Of(o.Blocks, "block"))
	if v.Left > 0 {
		o.Sentence += fmt.Sprintf(", without %s that lacked a cell", plural.Of(v.Left, "block"))
	}
	switch {
	case o.Blocks < least:
		o.Sentence += fmt.Sprintf(": no claim, need %d blocks", least)
	case o.Low.Value <= 0 && o.High.Value >= 0:
		o.Sentence += ": no direction shown"
	}
}

// gainsOf are the gains of every cell and block in which both kernels were
// measured, in one session.
func gainsOf(list []*claim) []stats.Gain {
	var out []stats.Gain
	for _, c := range list {
		base := c.blocks(&c.a, c.x.Values)
		other := c.blocks(&c.b, c.y.Values)
		for _, block := range slices.Sorted(maps.Keys(other)) {
			h := other[block]
			b, ok := base[block]
			if !ok || b.torn || h.torn || b.stratum != h.stratum {
				continue // no block, or its kernels were measured at different times
			}
			if gain, ok := stats.GainOf(b.mean(), h.mean(), better(c.Metric)); ok {
				out = append(out, stats.Gain{Block: block, Family: c.Workload, Cell: c.Scenario + ":" + c.Metric.Name, Log: gain})
			}
		}
	}
	return out
}

// inBlock is what one kernel gave in one block.
type inBlock struct {
	values  []float64 // of its boots: one, save where a boot was made again
	stratum int
	torn    bool // over several sessions
}

// mean is geometric: an overall figure is of positive values only.
func (b *inBlock) mean() float64 { return stats.Summarise([][]float64{b.values}, 0).BootValues[0] }

func (c *claim) blocks(s *side, values []float64) map[int]inBlock {
	m := map[int]inBlock{}
	for i, b := range s.boots {
		h := m[b.Block]
		h.torn = h.torn || len(h.values) > 0 && h.stratum != s.strata[i]
		h.values, h.stratum = append(h.values, values[i]), s.strata[i]
		m[b.Block] = h
	}
	return m
}
