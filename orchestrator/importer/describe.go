package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// Described is what was understood, for whoever has to check it.
type Described struct {
	Sweep    string   `json:"sweep"`
	Baseline string   `json:"baseline"`
	Boots    string   `json:"boots"`
	Cells    []Line   `json:"cells"`
	Missing  []string `json:"missing,omitempty"` // cells without a figure, and why
	Notes    []string `json:"notes,omitempty"`
}

// Line is one cell.
type Line struct {
	results.Cell
	Trials  int      `json:"trials"`
	Boots   int      `json:"boots"`
	Failed  []string `json:"failed,omitempty"` // reasons
	Metrics []string `json:"metrics"`          // "throughput Mbit/s, higher is better, primary"
	Values  []string `json:"values,omitempty"` // of the primary metric, the first of them
}

// Name of the sweep that a new run gets.
func (m *Import) Name() string { return m.o.Name }

// Describe says what was understood.
func (m *Import) Describe() Described {
	d := Described{Sweep: m.o.Name, Baseline: m.o.Baseline, Notes: slices.Clone(m.notes),
		Boots: strings.TrimPrefix(m.unproven(), "imported: ")}
	at := map[int32]int{}
	metrics := map[int32]map[int32]bool{}
	for _, b := range m.boots(fresh()) {
		in := map[int32]bool{}
		for _, i := range b.trials {
			t := &m.trials[i]
			n, ok := at[t.cell]
			if !ok {
				n, at[t.cell] = len(d.Cells), len(d.Cells)
				d.Cells = append(d.Cells, Line{Cell: m.cells[t.cell]})
				metrics[t.cell] = map[int32]bool{}
			}
			x := &d.Cells[n]
			x.Trials++
			if !in[t.cell] {
				in[t.cell] = true
				x.Boots++
			}
			if !t.ok() {
				x.Failed = append(x.Failed, fmt.Sprintf("%s: %s: %s", m.where(t), t.more.outcome, t.more.reason))
			}
			for _, v := range m.of(t) {
				if m.metric[v.metric].Primary && len(x.Values) <= mostValues {
					x.Values = append(x.Values, m.figure(v))
				}
				if !metrics[t.cell][v.metric] {
					metrics[t.cell][v.metric] = true
					x.Metrics = append(x.Metrics, metricText(m.metric[v.metric]))
				}
			}
		}
	}
	for _, p := range m.places() {
		for _, k := range m.kernels() {
			c := p
			c.Kernel = k
			if i, ok := m.cellAt[c]; ok {
				if _, has := at[i]; has {
					continue
				}
			}
			d.Missing = append(d.Missing, fmt.Sprintf("%s: %s", c, m.whyMissing(c)))
		}
	}
	return d
}

// figure as text, with its unit.
func (m *Import) figure(v val) string {
	if v.why != 0 {
		return "n/a (" + m.names[v.why] + ")"
	}
	s := strconv.FormatFloat(v.v, 'g', 6, 64)
	if v.n > 1 {
		s = fmt.Sprintf("%s (mean of %d, sd %.3g)", s, v.n, v.sd)
	}
	return s
}

func (m *Import) whyMissing(c results.Cell) string {
	for _, x := range m.o.DidNotBoot {
		if x.Kernel == c.Kernel {
			return "did not boot: " + x.Reason
		}
	}
	if why := m.nas[c]; why != "" {
		return why
	}
	return "the imported files have no figure of it"
}

func metricText(x workloads.Metric) string {
	s := x.Name
	if x.Unit != "" {
		s += " " + x.Unit
	}
	switch x.Better {
	case workloads.Informative:
		s += ", not compared"
	default:
		s += ", " + string(x.Better) + " is better"
	}
	if x.Primary {
		s += ", primary"
	}
	return s
}

// Text of the description, a line each. Metrics stand once for cells that have
// the same ones.
func (d Described) Text() []string {
	out := []string{"sweep     " + d.Sweep, "baseline  " + d.Baseline, "boots     " + d.Boots}
	var sets [][]string
	for _, c := range d.Cells {
		if !slices.ContainsFunc(sets, func(s []string) bool { return slices.Equal(s, c.Metrics) }) && len(c.Metrics) > 0 {
			sets = append(sets, c.Metrics)
			out = append(out, c.Workload+"."+c.Scenario+" and those like it:")
			for _, s := range c.Metrics {
				out = append(out, "  metric  "+s)
			}
		}
	}
	for _, c := range d.Cells {
		line := fmt.Sprintf("cell      %s: %s in %s", c.Cell, plural.Of(c.Trials, "trial"), plural.Of(c.Boots, "boot"))
		if n := len(c.Values); n > mostValues {
			line += ": " + strings.Join(c.Values[:mostValues], ", ") + ", …"
		} else if n > 0 {
			line += ": " + strings.Join(c.Values, ", ")
		}
		out = append(out, line)
		for i, s := range c.Failed {
			if i == mostFailed && len(c.Failed) > mostFailed+1 {
				out = append(out, fmt.Sprintf("  … and %d more that failed", len(c.Failed)-i))
				break
			}
			out = append(out, "  FAILED  "+s)
		}
	}
	for _, s := range d.Missing {
		out = append(out, "n/a       "+s)
	}
	for _, s := range d.Notes {
		out = append(out, "note      "+s)
	}
	return out
}

const (
	mostFailed = 5 // reasons of one cell in a description
	mostValues = 8
)
