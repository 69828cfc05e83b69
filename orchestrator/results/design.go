package results

import (
	"slices"
	"strings"

	"kernsweep/workloads"
)

// Decides says that a metric of a workload's scenario belongs to the primary
// comparisons that the design declares, or that are primary without a word.
func (d *Design) Decides(workload, scenario string, m workloads.Metric) bool {
	if len(d.Primary) == 0 {
		return m.Primary && m.Better != workloads.Informative
	}
	return len(d.Declared(workload, scenario, m)) > 0
}

// Declared are those of d.Primary that name a metric of a workload's scenario.
func (d *Design) Declared(workload, scenario string, m workloads.Metric) []string {
	var out []string
	for _, text := range d.Primary {
		what, metric, named := strings.Cut(text, ":")
		if m.Better == workloads.Informative || what != workload && what != workload+"."+scenario {
			continue
		}
		if named && metric == m.Name || !named && m.Primary {
			out = append(out, text)
		}
	}
	return out
}

// narrow is the half width of an interval that is narrow enough where a design
// says nothing, as stats.Defaults has it.
const narrow = 0.01

// Narrow is the half width of a 95 % interval that is narrow enough, as a share.
func (d *Design) Narrow() float64 {
	if d.HalfWidth > 0 {
		return d.HalfWidth
	}
	return narrow
}

// NotRun counts the trials that a run asks for of a planned cell and the journal
// has no record of: of the blocks of its plan that its lane did not leave because
// it had enough, and of those that later sessions added. 0 for a cell that is n/a.
func (s *State) NotRun(c PlannedCell) int {
	if c.NA != "" {
		return 0
	}
	own := c.Boots
	if l := s.Model.Lane(c.Target); l != nil && l.Enough != nil {
		own = min(own, l.Enough.Blocks)
	}
	n := (own + len(c.Added)) * c.Repeat
	for _, t := range s.Model.TrialsOf(c.Cell) {
		if b := t.Slot.Block; !t.Slot.Warmup() && (b <= own || slices.Contains(c.Added, b)) {
			n--
		}
	}
	return max(n, 0)
}

// Needless counts the trials that were skipped, of blocks that their lanes left
// out later because they had enough: nobody misses them.
func (s *State) Needless() int {
	n := 0
	for _, c := range s.Plan.Cells {
		l := s.Model.Lane(c.Target)
		if l == nil || l.Enough == nil {
			continue
		}
		for _, t := range s.Model.TrialsOf(c.Cell) {
			if b := t.Slot.Block; b > l.Enough.Blocks && b <= c.Boots && !t.Slot.Warmup() && t.Outcome() == Skipped {
				n++
			}
		}
	}
	return n
}
