package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// stripTable is the strip plots of one metric, or of every scenario's primary one.
type stripTable struct {
	Caption string
	Groups  []stripGroup
}

// stripGroup is a scenario: its rows share an axis.
type stripGroup struct {
	Head, Metric string
	Ruler        template.HTML
	Rows         []stripRow
}

type stripRow struct {
	Kernel, Class string
	Plot          template.HTML // empty: None says why
	None          string
	Value, Range  string
	N             string
}

// strips draws the metrics that are wanted: all in one table, or one for each.
func (v *cellView) strips(want func(*Cell, workloads.Metric) bool, each bool) []stripTable {
	var out []stripTable
	for _, sc := range v.scenarios {
		cells := v.of(sc)
		for _, m := range v.metrics(sc) {
			if !want(cells[0], m) {
				continue
			}
			caption := "Every boot, and the interval of the mean"
			if each {
				caption = m.Name
			}
			i := slices.IndexFunc(out, func(t stripTable) bool { return t.Caption == caption })
			if i < 0 {
				i = len(out)
				out = append(out, stripTable{Caption: caption})
			}
			out[i].Groups = append(out[i].Groups, v.stripGroup(sc, m, cells))
		}
		if len(v.metrics(sc)) == 0 && !each { // not even its metrics are known
			g := stripGroup{Head: sc}
			for _, c := range cells {
				g.Rows = append(g.Rows, stripRow{Kernel: c.Kernel, Class: v.classes[c.Kernel], None: "n/a (" + emptyText(c) + ")"})
			}
			if len(out) == 0 {
				out = append(out, stripTable{Caption: "Every boot, and the interval of the mean"})
			}
			out[0].Groups = append(out[0].Groups, g)
		}
	}
	return out
}

func emptyText(c *Cell) string {
	switch {
	case c.DidNotBoot != nil && c.NA == "":
		return joined(": ", "did not boot", c.DidNotBoot.Stage, c.DidNotBoot.Reason)
	case c.Empty != "":
		return c.Empty
	}
	return "the trials gave no such value"
}

func (v *cellView) stripGroup(scenario string, m workloads.Metric, cells []*Cell) stripGroup {
	g := stripGroup{Head: scenario, Metric: metricText(m)}
	var all []float64
	for _, c := range cells {
		if f := c.named(m.Name); f != nil {
			all = append(all, extent(f)...)
		}
	}
	axis := svg.Scale(all)
	if len(all) > 0 {
		say := "axis: " + m.Name
		if m.Unit != "" {
			say += " in " + m.Unit
		}
		if axis.IsLog() {
			say += ", logarithmic"
		}
		g.Ruler = template.HTML(svg.Ruler(axis, say, "", ""))
	}
	for _, c := range cells {
		g.Rows = append(g.Rows, v.stripRow(axis, c, m, cells))
	}
	return g
}

func (c *Cell) named(metric string) *Figure {
	return c.figure(func(n string) bool { return n == metric })
}

// extent is what an axis must hold of a figure: all values, and its interval as
// far as that does not make the values one heap.
func extent(f *Figure) []float64 {
	if f.Trials == 0 || !f.Min.OK() {
		return nil
	}
	lo, hi := f.Min.Value, f.Max.Value
	out := []float64{lo, hi}
	if f.CILow.OK() && f.CIHigh.OK() {
		span := math.Max(hi-lo, math.Abs(hi)*1e-3)
		out = append(out, math.Max(f.CILow.Value, lo-2*span), math.Min(f.CIHigh.Value, hi+2*span))
	}
	return out
}

func (v *cellView) stripRow(a svg.Axis, c *Cell, m workloads.Metric, cells []*Cell) stripRow {
	r := stripRow{Kernel: c.Kernel, Class: v.classes[c.Kernel]}
	f := c.named(m.Name)
	if f == nil || f.Trials == 0 || !f.Median.OK() {
		r.None = "n/a (" + emptyText(c) + ")"
		if f != nil && len(f.Missing) > 0 && c.Empty == "" {
			r.None = "n/a (" + missingText(f) + ")"
		}
		return r
	}
	unit := ""
	if m.Unit != "" {
		unit = " " + m.Unit
	}
	r.Value, r.N = figureText(f.Median.Value)+unit, f.n()
	r.Range = ends(f.CILow, f.CIHigh)
	row := svg.StripRow{Class: r.Class, Title: fmt.Sprintf("%s, %s: median %s of %s", c.Kernel, m.Name, r.Value, plural.Of(f.Boots, "boot")),
		Median: &svg.Mark{Value: f.Median.Value, Title: "median " + r.Value}, Boots: bootMarks(c, f, unit), Trials: trialMarks(c, f, unit)}
	if f.CILow.OK() && f.CIHigh.OK() {
		row.Interval, row.HasInterval = [2]float64{f.CILow.Value, f.CIHigh.Value}, true
		row.IntervalSay = "95 % interval " + r.Range + unit
	}
	row.Baseline = baselineMark(c, m, cells)
	r.Plot = template.HTML(svg.Strip(a, row))
	return r
}

func baselineMark(c *Cell, m workloads.Metric, cells []*Cell) *svg.Mark {
	for _, b := range cells {
		if c.Baseline == "" || b.Kernel != c.Baseline {
			continue
		}
		if f := b.named(m.Name); f != nil && f.Median.OK() {
			return &svg.Mark{Value: f.Median.Value}
		}
	}
	return nil
}

const mostTitles = 120 // marks of a row with a title of their own

func bootMarks(c *Cell, f *Figure, unit string) []svg.Mark {
	out := make([]svg.Mark, len(f.BootValues))
	var names []string
	if len(out) <= mostTitles {
		names = bootNumbers(c, f)
	}
	for i, x := range f.BootValues {
		out[i].Value = x
		if names != nil {
			out[i].Title = names[i] + ": " + figureText(x) + unit
		}
	}
	return out
}

// trialMarks are the trials of boots that had several.
func trialMarks(c *Cell, f *Figure, unit string) []svg.Mark {
	if f.Trials == f.Boots {
		return nil
	}
	var names []string
	if f.Trials <= mostTitles {
		names = bootNumbers(c, f)
	}
	out := make([]svg.Mark, 0, f.Trials)
	for i, b := range f.Raw {
		for j, x := range b {
			m := svg.Mark{Value: x}
			if names != nil {
				m.Title = fmt.Sprintf("%s, trial %d: %s%s", names[i], j+1, figureText(x), unit)
			}
			out = append(out, m)
		}
	}
	return out
}

// bootNumbers names the boots of a figure, in its order.
func bootNumbers(c *Cell, f *Figure) []string {
	var got []int
	for _, t := range c.Trials {
		if !t.Counts || slices.Contains(got, t.Boot) {
			continue
		}
		for _, v := range t.Values {
			if v.Name == f.Name && v.Missing == "" && stats.Num(v.Value).OK() {
				got = append(got, t.Boot)
				break
			}
		}
	}
	slices.Sort(got)
	out := make([]string, len(f.BootValues))
	for i := range out {
		if len(got) == len(out) {
			out[i] = fmt.Sprintf("boot %d", got[i])
		} else {
			out[i] = fmt.Sprintf("value %d", i+1)
		}
	}
	return out
}
