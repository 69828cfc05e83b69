package report

import (
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/workloads"
)

// workloadPart is a workload on the page.
type workloadPart struct {
	ID      string
	Targets []targetPart
	Text    string // the tables in the layout that the tool's users know
}

// targetPart is a workload on one target.
type targetPart struct {
	Workload    string
	Name, Marks string
	Strips      []stripTable // of the metrics that verdicts are about
	More        []stripTable // of the others
	Undrawn     bool         // the page has so many boots already: the table has their figures
	Figures     []figureGroup
	Beside      []besidePart
	Activity    []activityRow
	Lines       []linesPart
	LinesOpen   bool
	NoLines     string // why nothing is drawn; "": something is, or was measured
	Key         []kernelKey
}

// kernelKey is a kernel and how its lines are drawn.
type kernelKey struct{ Name, Class string }

// besidePart is what moved beside a difference.
type besidePart struct {
	What string
	Says []string
}

// Limits that keep a page of many cells small. What is left out is said.
const (
	mostStrips = 400 // rows of strip plots of metrics that no verdict is about
	openLines  = 12  // drawings over time that are open from the start
)

func workloadParts(src *source, k kernelClasses) []workloadPart {
	d := src.doc
	lines := newLinesBudget(d)
	var out []workloadPart
	strips := 0
	for i := range d.Workloads {
		w := &d.Workloads[i]
		p := workloadPart{ID: w.ID, Text: plainTables(src, w)}
		for j := range d.Targets {
			t := &d.Targets[j]
			v := newCellView(d, w, t.Name, k)
			if len(v.cells) == 0 {
				continue
			}
			part := targetPart{Workload: w.ID, Name: t.Name, Marks: strings.TrimSpace(marks(t)), Figures: v.figureGroups(), Beside: v.beside(),
				Activity: v.activity(), Lines: lines.parts(src, v), LinesOpen: lines.charts <= openLines}
			part.Strips = v.strips(func(c *Cell, m workloads.Metric) bool { return v.primary(c, m) }, false)
			if n := v.rows(); strips+n <= mostStrips {
				strips += n
				part.More = v.strips(func(c *Cell, m workloads.Metric) bool {
					return !v.primary(c, m) && m.Better != workloads.Informative
				}, true)
			} else if n > 0 {
				part.Undrawn = true
			}
			part.dropEmptyLines()
			for _, name := range v.kernels {
				part.Key = append(part.Key, kernelKey{name, k[name]})
			}
			p.Targets = append(p.Targets, part)
		}
		out = append(out, p)
	}
	return out
}

// dropEmptyLines leaves one sentence where nobody sampled anything.
func (p *targetPart) dropEmptyLines() {
	drawn := slices.ContainsFunc(p.Lines, func(l linesPart) bool { return len(l.Panels) > 0 })
	if drawn || slices.ContainsFunc(p.Activity, func(a activityRow) bool { return a.None == "" }) {
		return
	}
	p.NoLines = "n/a (no samples on file)"
	if len(p.Lines) > 0 && len(p.Lines[0].Says) > 0 {
		p.NoLines = p.Lines[0].Says[0]
	}
	p.Lines, p.Activity = nil, nil
}

// plainTables are the workload's tables as --format text prints them.
func plainTables(src *source, w *Workload) string {
	s := workload(src, w, 100)
	return strings.Join(s.lines, "\n")
}

// cellView is the cells of one workload on one target.
type cellView struct {
	doc       *Document
	workload  string
	target    string
	cells     []*Cell
	scenarios []string
	kernels   []string
	classes   kernelClasses
	compared  []*compare.Comparison
}

func newCellView(d *Document, w *Workload, target string, k kernelClasses) *cellView {
	v := &cellView{doc: d, workload: w.ID, target: target, classes: k}
	for i := range w.Cells {
		c := &w.Cells[i]
		if c.Target != target {
			continue
		}
		v.cells = append(v.cells, c)
		v.scenarios = addName(v.scenarios, c.Scenario)
		v.kernels = addName(v.kernels, c.Kernel)
	}
	if d.Judgement != nil {
		for i := range d.Judgement.Comparisons {
			if c := &d.Judgement.Comparisons[i]; c.Target == target && c.Workload == w.ID {
				v.compared = append(v.compared, c)
			}
		}
	}
	return v
}

func addName(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

func (v *cellView) of(scenario string) []*Cell {
	var out []*Cell
	for _, c := range v.cells {
		if c.Scenario == scenario {
			out = append(out, c)
		}
	}
	return out
}

// comparison of a cell's metric with its baseline, nil when there is none.
func (v *cellView) comparison(c *Cell, metric string) *compare.Comparison {
	for _, x := range v.compared {
		if x.Scenario == c.Scenario && x.Kernel == c.Kernel && x.Metric.Name == metric {
			return x
		}
	}
	return nil
}

// primary reports whether a verdict is about the metric: declared, or marked by
// the workload; where neither is, the first that has a direction.
func (v *cellView) primary(c *Cell, m workloads.Metric) bool {
	declared, some := false, false
	for _, x := range v.compared {
		if x.Scenario == c.Scenario && x.Primary {
			some = true
			declared = declared || x.Metric.Name == m.Name
		}
	}
	if some {
		return declared
	}
	first := ""
	for _, x := range v.metrics(c.Scenario) {
		if x.Primary {
			some = true
		}
		if first == "" && x.Better != workloads.Informative {
			first = x.Name
		}
	}
	if some {
		return m.Primary
	}
	return m.Name == first
}

// metrics of a scenario's cells, in order.
func (v *cellView) metrics(scenario string) []workloads.Metric {
	var out []workloads.Metric
	for _, c := range v.of(scenario) {
		for _, f := range c.Figures {
			if !slices.ContainsFunc(out, func(m workloads.Metric) bool { return m.Name == f.Name }) {
				out = append(out, f.Metric)
			}
		}
	}
	return out
}

// rows is how many rows the strip plots of all metrics would have.
func (v *cellView) rows() int {
	n := 0
	for _, c := range v.cells {
		n += len(c.Figures)
	}
	return n
}

// beside lists the counters that moved with the differences.
func (v *cellView) beside() []besidePart {
	var out []besidePart
	for _, c := range v.compared {
		p := besidePart{What: whatOf(c) + ", " + c.Metric.Name + ": " + pairText(c)}
		for _, m := range c.Moved {
			p.Says = append(p.Says, m.Sentence)
		}
		if w := c.Within; w != nil {
			p.Says = append(p.Says, withinText(w))
		}
		if len(p.Says) > 0 {
			out = append(out, p)
		}
	}
	return out
}

func withinText(w *compare.Within) string {
	s := "Inside single boots the trials do not separate"
	if w.Separate {
		s = "Inside single boots the trials separate"
	}
	return s + " (" + figureText(float64(w.Trials[0])) + " beside " + figureText(float64(w.Trials[1])) + " trials, t " + numOr(w.T) + ", p " + numOr(w.P) +
		"): that tells those boots apart, and says nothing about kernels."
}
