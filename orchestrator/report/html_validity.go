package report

import (
	"fmt"
	"slices"

	"kernsweep/orchestrator/results"
)

// validityPart is why numbers may not be believed: hard findings, then soft ones.
type validityPart struct {
	Hard, Soft []validityRow
	Warnings   []validityRow // of workloads and counters, which no rule made
	Collect    []string      // evidence that could not be fetched
}

// validityRow is one sentence of one rule, whatever the numbers in it are.
type validityRow struct {
	Rule, Text, Threshold string
	Seen                  []evidenceRow
	More                  int // figures that are not listed
	Detail                []string

	key string
}

// evidenceRow is what a finding rests on, and where that was seen.
type evidenceRow struct {
	Evidence string
	Where    []string
	More     int // places that are not listed
}

const mostPlacesShown = 12

// newValidity gathers what the rules found about the run, and what was found in
// trials; the same sentence with the same evidence stands once.
func newValidity(d *Document) validityPart {
	v := validityPart{}
	var found []results.Found
	if d.Judgement != nil {
		found = append(found, d.Judgement.Findings...)
		for i := range d.Judgement.Comparisons {
			c := &d.Judgement.Comparisons[i]
			for _, f := range c.Findings {
				if !slices.ContainsFunc(d.Judgement.Findings, func(x results.Found) bool { return x.Rule == f.Rule && x.Evidence == f.Evidence }) {
					found = append(found, results.Found{Finding: f, Target: c.Target, Kernel: c.Kernel, Against: c.Baseline, Workload: c.Workload, Scenario: c.Scenario})
				}
			}
		}
	}
	for _, f := range found {
		v.add(f)
	}
	known := len(found) // findings of trials that the run's rules gathered already are not repeated
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			for _, f := range c.Findings {
				if !slices.ContainsFunc(found[:known], func(x results.Found) bool { return x.Rule == f.Rule && x.About(c.Cell, "") }) {
					v.add(f)
				}
			}
			v.cell(&c)
		}
	}
	return v
}

func (v *validityPart) add(f results.Found) {
	list := &v.Soft
	if f.Hard {
		list = &v.Hard
	}
	addRow(list, validityRow{Rule: f.Rule, Text: f.Text, Threshold: orDefault(f.Threshold, "n/a (none)"), Detail: f.Detail},
		orDefault(f.Evidence, "n/a (the sentence has it)"), whereText(f))
}

func addRow(list *[]validityRow, row validityRow, evidence, where string) {
	row.key = row.Rule + "\x00" + withoutNumbers(row.Text)
	if len(row.Detail) > 0 {
		row.key += "\x00" + where // details are of one place
	}
	i := slices.IndexFunc(*list, func(x validityRow) bool { return x.key == row.key })
	if i < 0 {
		i = len(*list)
		*list = append(*list, row)
	}
	x := &(*list)[i]
	i = slices.IndexFunc(x.Seen, func(e evidenceRow) bool { return e.Evidence == evidence })
	if i < 0 {
		if len(x.Seen) >= mostPlacesShown {
			x.More++
			return
		}
		i = len(x.Seen)
		x.Seen = append(x.Seen, evidenceRow{Evidence: evidence})
	}
	e := &x.Seen[i]
	switch {
	case slices.Contains(e.Where, where):
	case len(e.Where) >= mostPlacesShown:
		e.More++
	default:
		e.Where = append(e.Where, where)
	}
}

func whereText(f results.Found) string {
	s := joined("/", f.Target, f.Kernel, joined(".", f.Workload, f.Scenario))
	if s == "" {
		s = "the whole run"
	}
	if f.Against != "" {
		s += " against " + f.Against
	}
	if f.Metric != "" {
		s += ", " + f.Metric
	}
	if f.Boot != 0 {
		s += fmt.Sprintf(", boot %d", f.Boot)
	}
	if f.Trials > 0 {
		s += fmt.Sprintf(" (%d trials)", f.Trials)
	}
	return s
}

// cell adds the warnings of a cell that are no rule's, and what was not collected.
func (v *validityPart) cell(c *Cell) {
	for _, w := range c.Warnings {
		if c.ruled(w.Text) || v.knows(w.Text) {
			continue
		}
		addRow(&v.Warnings, validityRow{Text: w.Text}, "", fmt.Sprintf("%s (%d trials)", c.Cell, w.Trials))
	}
	for _, t := range c.Trials {
		if t.Collect != "" && len(v.Collect) < mostFailures {
			v.Collect = append(v.Collect, fmt.Sprintf("%s, boot %d, repeat %d: %s", c.Cell, t.Boot, t.Repeat, t.Collect))
		}
	}
}

func (v *validityPart) knows(text string) bool {
	has := func(x validityRow) bool { return x.Text == text }
	return slices.ContainsFunc(v.Hard, has) || slices.ContainsFunc(v.Soft, has)
}
