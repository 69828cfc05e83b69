package report

import (
	"strings"
	"unicode"

	"kernsweep/workloads"
)

type latencyColumn struct {
	head  string
	words []string // a metric with one of them is the column's …
	name  string   // … or, without words, the metric of this name
}

func (l latencyColumn) is(name string) bool {
	if l.name != "" {
		return l.name == name
	}
	return isLatency(l.words)(name)
}

// latencyColumns are the columns of the latency table and the words by which a
// metric is known. Metrics of the waker's own lateness are a series of their own.
func latencyColumns() []latencyColumn {
	return []latencyColumn{
		{head: "max", words: []string{"max"}},
		{head: "mean", words: []string{"mean", "avg"}},
		{head: "sd", words: []string{"sd", "stddev", "stdev"}},
		{head: "p50", words: []string{"p50", "median"}},
		{head: "p95", words: []string{"p95"}},
		{head: "p99", words: []string{"p99"}},
		{head: "due p99", name: "intended.p99"},
		{head: "due max", name: "intended.max"},
		{head: "samples", words: []string{"samples"}},
	}
}

// words of a metric's name: "wakeup_p99" has wakeup and p99.
func hasWord(name string, want []string) bool {
	for _, w := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, x := range want {
			if w == x {
				return true
			}
		}
	}
	return false
}

func isLatency(words []string) func(string) bool {
	return func(name string) bool {
		return hasWord(name, words) && !hasWord(name, []string{"waker", "late", "lateness", "intended", "9"}) // 9: of p99.9
	}
}

func isRuntime(name string) bool {
	return hasWord(name, []string{"runtime", "load", "elapsed", "build"}) && !hasWord(name, []string{"user", "system", "sys", "cpu", "share"})
}

// latencyTable has a row per scenario and kernel; runtime is relative to the
// baseline kernel = 100, latencies are in the metrics' own unit.
func latencyTable(v *view) {
	cols, unit := v.latencyColumns()
	if len(cols) == 0 {
		return
	}
	tab := table{labels: 2, head: []string{"scenario", "kernel", "runtime"}}
	for _, col := range cols {
		tab.head = append(tab.head, col.head)
	}
	tab.head = append(tab.head, "n")
	var notes footnotes
	for _, c := range v.cells {
		if f := c.figure(isRuntime); f != nil && strings.HasPrefix(f.Unit, "%") {
			v.shown[f.Name] = true // it was relative already
		}
	}
	for _, sc := range v.scenarios {
		label := sc
		for _, k := range v.kernels {
			if c := v.cell(k, sc); c != nil {
				latencyRows(v, &tab, &notes, c, cols, label)
				label = ""
			}
		}
	}
	v.out.blank()
	v.out.say(v.width, "", "Wakeup latency in %s; runtime of the load, baseline kernel = 100, lower is faster", unit)
	v.out.table(&tab, &notes, v.width)
	for _, col := range cols {
		if col.name != "" {
			v.out.say(v.width, "  ", "due: from the moment a wakeup was due, so that the waker's own delay counts; the others are from its write to the pipe")
			break
		}
	}
}

// latencyColumns are those that any cell has, with their unit.
func (v *view) latencyColumns() (cols []latencyColumn, unit string) {
	for _, col := range latencyColumns() {
		has := false
		for _, c := range v.cells {
			if f := c.figure(col.is); f != nil {
				has, v.shown[f.Name] = true, true
				if unit == "" {
					unit = f.Unit
				}
			}
		}
		if has {
			cols = append(cols, col)
		}
	}
	return cols, unit
}

func latencyRows(v *view, tab *table, notes *footnotes, c *Cell, cols []latencyColumn, label string) {
	if c.Empty != "" {
		tab.row(label, c.Kernel, na(c, nil, notes))
		return
	}
	rel, relSpan := v.relative(c, notes)
	row, spread, n := []string{label, c.Kernel, rel}, []string{"", "  min..max", relSpan}, ""
	for _, col := range cols {
		f := c.figure(col.is)
		if none(f) {
			row, spread = append(row, na(c, f, notes)), append(spread, "")
			continue
		}
		text := fig(f.Median.Value)
		if len(f.Missing) > 0 {
			text += notes.mark(missingText(f))
		}
		row, spread = append(row, text), append(spread, f.spread())
		if n == "" {
			n = f.n()
		}
	}
	tab.rows = append(tab.rows, append(row, n))
	if strings.Join(spread[2:], "") != "" {
		tab.rows = append(tab.rows, spread)
	}
}

// relative is the runtime of a cell's load, the baseline kernel's median = 100.
func (v *view) relative(c *Cell, notes *footnotes) (median, spread string) {
	f := c.figure(isRuntime)
	if none(f) {
		return na(c, f, notes), ""
	}
	if f.Better == workloads.Informative {
		return "n/a " + notes.mark("runtime: here it depends on chance (the probe's length is fixed), so it is not set against the baseline"), ""
	}
	base := v.cell(c.Baseline, c.Scenario)
	if base == nil {
		return "n/a " + notes.mark("runtime: no baseline kernel in this table"), ""
	}
	b := base.figure(isRuntime)
	if none(b) || b.Median.Value <= 0 {
		return "n/a " + notes.mark("runtime: the baseline kernel "+base.Kernel+" has none"), ""
	}
	percent := func(x float64) string { return short(100 * x / b.Median.Value) }
	if f.Trials > 1 {
		spread = percent(f.Min.Value) + ".." + percent(f.Max.Value)
	}
	return percent(f.Median.Value), spread
}
