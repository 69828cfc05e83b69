package report

import (
	"fmt"
	"html/template"

	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// figureGroup is one metric of one scenario, a row for each kernel.
type figureGroup struct {
	Scenario, Metric string
	Rows             []figureRow
}

type figureRow struct {
	Kernel string
	None   string // why there are no figures; "": there are
	Cells  []string
	Word   string
	Icon   template.HTML
	Aside  string // values that are not there, and why; averages of a tool
}

// figureHead names the cells of a figureRow, in order.
func figureHead() []string {
	return []string{"boots × trials", "median", "95 % interval", "change [95 %]", "p (Holm)", "geometric mean", "sd between boots", "sd within boots",
		"min", "max", "mean of trials", "sd of trials"}
}

func (v *cellView) figureGroups() []figureGroup {
	var out []figureGroup
	for _, sc := range v.scenarios {
		cells := v.of(sc)
		ms := v.metrics(sc)
		for _, m := range ms {
			g := figureGroup{Scenario: sc, Metric: metricText(m)}
			for _, c := range cells {
				g.Rows = append(g.Rows, v.figureRow(c, m))
			}
			out = append(out, g)
		}
		if len(ms) == 0 {
			g := figureGroup{Scenario: sc, Metric: "no metric is known"}
			for _, c := range cells {
				g.Rows = append(g.Rows, figureRow{Kernel: c.Kernel, None: "n/a (" + emptyText(c) + ")"})
			}
			out = append(out, g)
		}
	}
	return out
}

func (v *cellView) figureRow(c *Cell, m workloads.Metric) figureRow {
	r := figureRow{Kernel: c.Kernel}
	f := c.named(m.Name)
	if f != nil && len(f.Missing) > 0 {
		r.Aside = missingText(f)
	}
	if f != nil && len(f.Reported) > 0 {
		x := f.Reported[0]
		r.Aside = joined("; ", r.Aside, fmt.Sprintf("the tool's average of %d runs, sd %s", x.N, figureText(x.SD)))
	}
	if f == nil || f.Trials == 0 {
		r.None = "n/a (" + emptyText(c) + ")"
		if r.Aside != "" && c.Empty == "" {
			r.None, r.Aside = "n/a ("+r.Aside+")", ""
		}
		return r
	}
	x := v.comparison(c, m.Name)
	change, p := "", ""
	switch {
	case x != nil:
		change, p = changeText(x), "not primary"
	case c.Kernel == c.Baseline:
		change = "baseline"
	case m.Better == workloads.Informative:
		change = "not compared"
	default:
		change = "n/a (no baseline)"
	}
	if x != nil && x.Primary {
		p = pText(x.Holm)
		r.Word, r.Icon = verdictWord(x.Verdict), template.HTML(svg.Icon(shapeOf(x.Verdict)))
	}
	r.Cells = []string{f.n(), numOr(f.Median), ends(f.CILow, f.CIHigh), change, p, numOr(f.GeoMean), numOr(f.SDBetween), numOr(f.SDWithin),
		numOr(f.Min), numOr(f.Max), numOr(f.Mean), numOr(f.SD)}
	return r
}

// pText prints a p-value to two digits; a tiny one as what it is below of.
func pText(p stats.Number) string {
	switch {
	case !p.OK():
		return "n/a (" + p.Missing + ")"
	case p.Value < 1e-4:
		return "< 0.0001"
	}
	return svg.Number(p.Value, p.Value/10)
}

// activityRow is what the machine did in a cell: medians over its trials.
type activityRow struct {
	Scenario, Kernel string
	None             string
	Cells            []string
}

func activityHead() []string {
	return []string{"context switches/s", "interrupts/s", "user %", "system %", "idle %", "waiting %", "stolen %", "trials"}
}

func (v *cellView) activity() []activityRow {
	var out []activityRow
	for _, c := range v.cells {
		r := activityRow{Scenario: c.Scenario, Kernel: c.Kernel}
		if a := c.Activity; a != nil {
			for _, n := range []stats.Number{a.Switches, a.Interrupts, a.User, a.System, a.Idle, a.Wait, a.Steal} {
				if n.OK() {
					r.Cells = append(r.Cells, short(n.Value))
				} else {
					r.Cells = append(r.Cells, "n/a ("+n.Missing+")")
				}
			}
			r.Cells = append(r.Cells, fmt.Sprint(a.Trials))
		} else {
			r.None = "n/a (no samples)"
			if c.Empty != "" {
				r.None = "n/a (" + c.Empty + ")"
			}
		}
		out = append(out, r)
	}
	return out
}
