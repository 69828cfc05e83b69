package validity

import (
	"fmt"
	"math"
	"slices"

	"kernsweep/orchestrator/results"
)

// byLayout is how much where code lies in memory may change a figure, as a share
// (Mytkowicz et al., ASPLOS 2009: more than -O3 does).
const byLayout = 0.02

func layoutRules() []runRule {
	return []runRule{
		{Rule{Name: "image layout", Threshold: "a difference of more than 2 %, or two builds of each scheduler that agree",
			Why: "Booting again does not move a kernel's code in memory, building it again does, and that alone shifts results by 2 %."}, layouts},
	}
}

// layouts is about small differences between two builds. A machine whose time is
// its count of instructions has no caches for a layout to matter.
func layouts(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		base := v.find(c, c.Baseline, c.Scenario)
		if base == nil || base.side == c.side || v.sameImage(c.side, base.side) {
			continue
		}
		if lane := v.lanes[c.Target]; lane.Emulated && lane.Clock == "guest" {
			continue
		}
		for _, m := range v.state.Plan.Metrics[c.Workload+"."+c.Scenario] {
			if !v.state.Plan.Design.Decides(c.Workload, c.Scenario, m) {
				continue
			}
			x, okX := c.value(m.Name)
			y, okY := base.value(m.Name)
			if !okX || !okY || x <= 0 || y <= 0 || x == y || math.Abs(x/y-1) > byLayout {
				continue
			}
			text := v.layoutText(c, base, m.Name)
			if text == "" {
				continue
			}
			f := c.about(text)
			f.Against, f.Metric = c.Baseline, m.Name
			f.Evidence = fmt.Sprintf("%+.2f %% between the medians", 100*(x/y-1))
			out = append(out, f)
		}
	}
	return out
}

// layoutText is what to make of a small difference, "" when it is more than layout.
func (v *view) layoutText(c, base *cellView, metric string) string {
	if s := c.side.scheduler(); s != "" && s == base.side.scheduler() {
		return "both builds have the same scheduler, and a difference of at most 2 % may be code layout"
	}
	switch builds, agree := v.otherBuilds(c, base, metric); {
	case !builds:
		return "a difference of at most 2 % between two builds may be code layout, not scheduling: one build of each scheduler was measured"
	case !agree:
		return "a difference of at most 2 % between two builds may be code layout, not scheduling: other builds of the same schedulers do not agree"
	}
	return ""
}

// sameImage reports whether two kernels are one build, booted in two ways.
func (v *view) sameImage(a, b *side) bool {
	x, y := v.images[kernelKey{a.target, a.kernel}], v.images[kernelKey{b.target, b.kernel}]
	if x != "" && y != "" {
		return x == y
	}
	p, q := a.among(buildOf), b.among(buildOf)
	return len(p) > 0 && alike(p, q) && p[0] != release(a.boots[0]) // the release alone says little
}

// otherBuilds reports whether both schedulers were measured with two builds or
// more, and whether every build of one is on the same side of every one of the other.
func (v *view) otherBuilds(c, base *cellView, metric string) (there, agree bool) {
	mine, its := v.builds(c, metric), v.builds(base, metric)
	if len(mine) < 2 || len(its) < 2 {
		return false, false
	}
	above := slices.Min(mine) > slices.Max(its)
	below := slices.Max(mine) < slices.Min(its)
	return true, above || below
}

// builds are the figures of the distinct images that ran a cell's scheduler, all
// built with the cell's own configuration: with another one it is no second build.
func (v *view) builds(c *cellView, metric string) []float64 {
	scheduler := c.side.scheduler()
	if scheduler == "" {
		return nil
	}
	var figures []float64
	var seen []*side
	for i := range v.cells {
		o := &v.cells[i]
		if o.Target != c.Target || o.Workload != c.Workload || o.Scenario != c.Scenario || o.side.scheduler() != scheduler ||
			o.side != c.side && !v.sameConfig(o.side, c.side) {
			continue
		}
		if slices.ContainsFunc(seen, func(s *side) bool { return v.sameImage(s, o.side) }) {
			continue
		}
		if x, ok := o.value(metric); ok {
			seen, figures = append(seen, o.side), append(figures, x)
		}
	}
	return figures
}

// sameConfig is false, too, when one is not on file.
func (v *view) sameConfig(a, b *side) bool {
	x, y := v.config(a), v.config(b)
	return x != nil && y != nil && len(configChanges(x, y)) == 0
}

// scheduler that the boots' probe found; "" when it is not one.
func (s *side) scheduler() string {
	names := s.among(func(b *results.BootState) string { return b.Result.Record.Scheduler.Name })
	if len(names) != 1 {
		return ""
	}
	return names[0]
}
