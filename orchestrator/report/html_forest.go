package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// forest is the ratio plot: every primary comparison on one axis, by target.
type forest struct {
	Ruler   template.HTML
	Targets []forestTarget
}

type forestTarget struct {
	Name string
	Rows []forestRow
}

type forestRow struct {
	What, Beside string
	Plot         template.HTML // empty: None says why
	None         string
	Change, Gain string
	Word         string
	Icon         template.HTML
}

// newForest is nil when a run compares nothing.
func newForest(d *Document) *forest {
	if d.Judgement == nil {
		return nil
	}
	var list []*compare.Comparison
	for i := range d.Judgement.Comparisons {
		if c := &d.Judgement.Comparisons[i]; c.Primary {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	axis := svg.Change(reach(list))
	f := &forest{Ruler: template.HTML(svg.Ruler(axis, "axis: gain over the baseline, logarithmic", "worse", "better"))}
	for _, c := range list {
		i := slices.IndexFunc(f.Targets, func(t forestTarget) bool { return t.Name == c.Target })
		if i < 0 {
			i = len(f.Targets)
			f.Targets = append(f.Targets, forestTarget{Name: c.Target})
		}
		f.Targets[i].Rows = append(f.Targets[i].Rows, newForestRow(axis, c))
	}
	return f
}

// reach of the axis: it holds every change and most intervals. One that is far
// wider than the others ends in an arrow, so that it does not flatten them.
func reach(list []*compare.Comparison) float64 {
	most := 0.0
	var ends []float64
	for _, c := range list {
		g, lo, hi, ok := gained(c)
		if !ok {
			continue
		}
		most = math.Max(most, math.Abs(math.Log(g))*1.1)
		most = math.Max(most, math.Log1p(math.Max(c.Effect, 0))*1.5)
		if c.Low.OK() && c.High.OK() {
			ends = append(ends, math.Max(math.Abs(math.Log(lo)), math.Abs(math.Log(hi))))
		}
	}
	if len(ends) > 0 {
		usual := stats.Quantile(ends, 0.75)
		if wide := slices.Max(ends); wide <= 4*math.Max(usual, most) {
			usual = wide
		}
		if !math.IsInf(usual, 0) {
			most = math.Max(most, usual*1.05)
		}
	}
	if most == 0 {
		most = 0.05
	}
	return most
}

// gained is the ratio to the baseline and its interval, turned so that above 1 is
// better. The interval is 0 and 0 where there is none.
func gained(c *compare.Comparison) (ratio, low, high float64, ok bool) {
	if !c.Change.OK() || c.Scale != stats.Ratio || c.Change.Value <= -1 {
		return 0, 0, 0, false
	}
	ratio = 1 + c.Change.Value
	if c.Low.OK() && c.High.OK() {
		low, high = 1+c.Low.Value, 1+c.High.Value
	}
	if c.Metric.Better == workloads.LowerIsBetter {
		ratio = 1 / ratio
		if high > 0 {
			low, high = 1/high, 1/math.Max(low, math.SmallestNonzeroFloat64)
		}
	}
	return ratio, math.Max(low, math.SmallestNonzeroFloat64), math.Min(high, math.MaxFloat64), ratio > 0 && !math.IsInf(ratio, 0)
}

func newForestRow(a svg.Axis, c *compare.Comparison) forestRow {
	r := forestRow{What: whatOf(c), Beside: pairText(c) + "; " + metricText(c.Metric),
		Change: changeText(c), Word: verdictWord(c.Verdict), Icon: template.HTML(svg.Icon(shapeOf(c.Verdict)))}
	g, lo, hi, ok := gained(c)
	switch {
	case !c.Change.OK():
		r.None = "n/a (" + c.Change.Missing + ")"
		r.Change = "n/a"
		return r
	case !ok:
		r.None = "n/a (a difference, not a ratio: a value is 0 or negative)"
		return r
	}
	if c.Metric.Better == workloads.LowerIsBetter {
		r.Gain = svg.Percent(g - 1)
	}
	r.Plot = template.HTML(svg.Forest(a, svg.ForestRow{
		Title: fmt.Sprintf("%s, %s: %s, %s", whatOf(c), c.Kernel, changeText(c), r.Word),
		Shape: shapeOf(c.Verdict), Ratio: g, Interval: [2]float64{lo, hi},
		HasInterval: c.Low.OK() && c.High.OK(), Zone: c.Effect,
	}))
	return r
}
