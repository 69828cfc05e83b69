package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/workloads"
)

// view is one workload on one target.
type view struct {
	src   *source
	width int
	out   *section
	cells []*Cell // of the target, in the plan's order
	shown map[string]bool
	own   bool // the workload has a table of its own

	scenarios, kernels []string // in the plan's order
	at                 map[place]*Cell
	seen               map[string]bool
}

// renderers is the table of tables: a workload kind whose people know a layout
// of their own is one line here. A renderer marks the metrics it showed; the
// rest, and every other kind, goes into the generic table.
func renderers() map[string]func(*view) {
	return map[string]func(*view){
		"iperf":     iperfLines,
		"kernbench": kernbenchBlocks,
		"crunch":    crunchTable,
		"latency":   latencyTable,
		"vmstat":    machineTable,
	}
}

func workload(src *source, w *Workload, width int) section {
	s := section{title: w.ID}
	s.say(width, "", "Medians over boots; min..max over trials; CI95 of the geometric mean; n = boots x trials.")
	for _, t := range src.doc.Targets {
		v := &view{src: src, width: width, out: &s, shown: map[string]bool{},
			at: map[place]*Cell{}, seen: map[string]bool{}}
		for i := range w.Cells {
			if w.Cells[i].Target == t.Name {
				v.take(&w.Cells[i])
			}
		}
		if len(v.cells) == 0 {
			continue
		}
		s.blank()
		s.say(width, "  ", "%s on %s%s", w.ID, t.Name, marks(&t))
		if r := renderers()[w.Kind]; r != nil {
			v.own = true
			r(v)
		}
		generic(v)
		v.nowheres()
		v.asides()
	}
	return s
}

// marks are the facts about a target no figure may be read without.
func marks(t *Target) string {
	s := ""
	if t.HostBound {
		s += " (not comparable: figures depend on the controller's load)"
	}
	if t.Clock == "guest" {
		s += " (seconds of the target's own clock)"
	}
	return s
}

type place struct{ kernel, scenario string }

// take adds a cell to the view.
func (v *view) take(c *Cell) {
	at := place{c.Kernel, c.Scenario}
	if v.at[at] != nil {
		return
	}
	if !v.seen["s "+c.Scenario] {
		v.seen["s "+c.Scenario] = true
		v.scenarios = append(v.scenarios, c.Scenario)
	}
	if !v.seen["k "+c.Kernel] {
		v.seen["k "+c.Kernel] = true
		v.kernels = append(v.kernels, c.Kernel)
	}
	v.at[at] = c
	v.cells = append(v.cells, c)
}

func (v *view) cell(kernel, scenario string) *Cell { return v.at[place{kernel, scenario}] }

// metrics of a scenario that no renderer showed, in order.
func (v *view) metrics(scenario string) []workloads.Metric {
	var out []workloads.Metric
	for _, k := range v.kernels {
		c := v.cell(k, scenario)
		if c == nil {
			continue
		}
		for _, f := range c.Figures {
			if !v.shown[f.Name] && !v.aside(f.Metric) && !v.nowhere(f.Metric) && !slices.ContainsFunc(out, func(m workloads.Metric) bool { return m.Name == f.Name }) {
				out = append(out, f.Metric)
			}
		}
	}
	return out
}

// aside reports whether a metric is left to csv and json: facts nobody compares,
// beside a table of the workload's own.
func (v *view) aside(m workloads.Metric) bool {
	return v.own && m.Better == workloads.Informative && !m.Primary
}

// nowhere reports whether no cell has a value of a secondary metric: a row of
// n/a for each kernel would say less than one line.
func (v *view) nowhere(m workloads.Metric) bool {
	if !v.own || m.Primary {
		return false
	}
	for _, c := range v.cells {
		for _, f := range c.Figures {
			if f.Name == m.Name && !none(&f) {
				return false
			}
		}
	}
	return true
}

// nowheres names such metrics, with the first reason.
func (v *view) nowheres() {
	seen := map[string]bool{}
	for _, c := range v.cells {
		for _, f := range c.Figures {
			if len(f.Missing) > 0 && !seen[f.Name] && !v.shown[f.Name] && v.nowhere(f.Metric) {
				seen[f.Name] = true
				v.out.say(v.width, "  ", "%s: n/a in every trial (%s)", f.Name, f.Missing[0].Text)
			}
		}
	}
}

// asides names them.
func (v *view) asides() {
	var names []string
	for _, c := range v.cells {
		for _, f := range c.Figures {
			if v.aside(f.Metric) && !v.shown[f.Name] && !v.nowhere(f.Metric) {
				names = addNew(names, f.Name)
			}
		}
	}
	if len(names) > 0 {
		v.out.say(v.width, "  ", "on file too (--format csv or json): %s", strings.Join(names, ", "))
	}
}

// generic has a row per scenario, metric and kernel.
func generic(v *view) {
	tab := table{labels: 2, left: []int{2},
		head: []string{"scenario, metric", "kernel", "unit", "median", "min..max", "CI95", "n"}}
	var notes footnotes
	for _, sc := range v.scenarios {
		for _, m := range v.metrics(sc) {
			if len(tab.rows) > 0 {
				tab.row()
			}
			label := sc + ", " + m.Name
			for _, k := range v.kernels {
				c := v.cell(k, sc)
				if c == nil {
					continue
				}
				tab.rows = append(tab.rows, genericRow(label, c, m, &notes))
				label = ""
			}
		}
	}
	if len(tab.rows) == 0 && len(v.shown) > 0 {
		return
	}
	if len(tab.rows) == 0 {
		emptyRows(v, &tab, &notes)
	}
	v.out.blank()
	v.out.table(&tab, &notes, v.width)
}

// emptyRows stand for cells of which not even the metrics are known.
func emptyRows(v *view, tab *table, notes *footnotes) {
	for _, c := range v.cells {
		why := c.Empty
		if why == "" {
			why = "the trials gave no values"
		}
		tab.row(c.Scenario, c.Kernel, "", "n/a "+notes.mark(why))
	}
}

func genericRow(label string, c *Cell, m workloads.Metric, notes *footnotes) []string {
	f := c.figure(func(n string) bool { return n == m.Name })
	if f == nil || c.Empty != "" {
		return []string{label, c.Kernel, m.Unit, na(c, f, notes)}
	}
	n := f.n()
	if f.Boots > 0 && len(f.Missing) > 0 {
		n += " " + notes.mark(missingText(f))
	}
	if !f.Median.OK() {
		return []string{label, c.Kernel, m.Unit, na(c, f, notes), "", "", n}
	}
	ci := "n/a "
	if f.CILow.OK() && f.CIHigh.OK() {
		ci = brief(f.CILow.Value) + ".." + brief(f.CIHigh.Value)
	} else {
		ci += notes.mark("CI95: " + cmp.Or(f.CILow.Missing, f.CIHigh.Missing))
	}
	spread := f.spread()
	if r := f.reported(); r != "" {
		spread = r
	} else if spread == "" {
		spread = "n/a " + notes.mark("min..max: one trial")
	}
	return []string{label, c.Kernel, m.Unit, fig(f.Median.Value), spread, ci, n}
}

// na is the mark of a figure that is not there, its reason in the notes.
func na(c *Cell, f *Figure, notes *footnotes) string {
	switch {
	case c.DidNotBoot != nil && c.NA == "":
		return "did not boot " + notes.mark(c.Kernel+": "+c.DidNotBoot.text())
	case c.Empty != "":
		return "n/a " + notes.mark(c.Empty)
	case f != nil && len(f.Missing) > 0:
		return "n/a " + notes.mark(missingText(f))
	}
	return "n/a " + notes.mark("the trials gave no such value")
}

func missingText(f *Figure) string {
	s := ""
	for _, m := range f.Missing {
		if s != "" {
			s += "; "
		}
		s += fmt.Sprintf("%s: missing in %s: %s", f.Name, plural.Of(m.Trials, "trial"), m.Text)
	}
	return s
}

// spread is "min..max" over the trials, "" for fewer than two.
func (f *Figure) spread() string {
	if f.Trials < 2 {
		return ""
	}
	return brief(f.Min.Value) + ".." + brief(f.Max.Value)
}

// reported says what the tool printed of runs that are not on file: "mean of 5
// (sd 0.04)"; "" where the values are measurements.
func (f *Figure) reported() string {
	if len(f.Reported) == 0 || len(f.Reported) < f.Boots {
		return ""
	}
	n, sd := span(f.Reported, func(r Reported) float64 { return float64(r.N) }), span(f.Reported, func(r Reported) float64 { return r.SD })
	if len(f.Reported) == 1 {
		return "mean of " + n + " (sd " + sd + ")"
	}
	return "means of " + n + " (sd " + sd + ")"
}

func span(list []Reported, of func(Reported) float64) string {
	low, high := of(list[0]), of(list[0])
	for _, r := range list {
		low, high = min(low, of(r)), max(high, of(r))
	}
	if low == high {
		return fig(low)
	}
	return fig(low) + ".." + fig(high)
}
