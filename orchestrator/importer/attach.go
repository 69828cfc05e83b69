package importer

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// Attaches says that vmstat text is the activity of trials of a workload, and no
// trial of its own.
func (m *Import) Attaches() bool { return m.o.Format == "vmstat" && kindOf(m.workload) != "vmstat" }

// attach judges trials of the run again, with the activity that they lacked: one
// file for each trial of a cell, in their order. Their values stay as they are.
func (m *Import) attach(s *results.State) (func(lane string) []results.Record, error) {
	byLane := map[string][]results.Record{}
	for i, c := range m.cells {
		var mine []*trial
		for k := range m.trials {
			if m.trials[k].cell == int32(i) {
				mine = append(mine, &m.trials[k])
			}
		}
		bare := lacking(s.Model, c)
		switch {
		case len(bare) == 0:
			return nil, fmt.Errorf("the run has no trial of %s without an activity; it has trials of: %s", c, strings.Join(cellsOf(s.Model), ", "))
		case len(bare) != len(mine):
			return nil, fmt.Errorf("%s has %s without an activity, and you name %s: name one for each, in their order", c, plural.Of(len(bare), "trial"), plural.Of(len(mine), "vmstat file"))
		}
		for k, a := range bare {
			p := *a.Parsed
			p.Notes = append(slices.Clone(p.Notes), "activity from "+m.where(mine[k])+", which belongs to it as whoever imported it says")
			p.Warnings = append(slices.Clone(p.Warnings), mine[k].more.warnings...)
			slot := a.Slot
			byLane[c.Target] = append(byLane[c.Target], results.Record{Kind: results.KindJudged, Lane: c.Target, Slot: &slot, Attempt: a.Number,
				Outcome: a.Outcome, Parsed: &p, Summary: mine[k].more.activity, Findings: a.Findings})
		}
	}
	return func(lane string) []results.Record { return byLane[lane] }, nil
}

func lacking(model *results.Model, c results.Cell) []*results.Attempt {
	var out []*results.Attempt
	for _, t := range model.TrialsOf(c) {
		if a := t.Valid(); a != nil && a.Summary == nil && a.Parsed != nil {
			out = append(out, a)
		}
	}
	return out
}

func cellsOf(model *results.Model) []string {
	var out []string
	for _, c := range model.Cells() {
		out = append(out, c.String())
	}
	return out
}
