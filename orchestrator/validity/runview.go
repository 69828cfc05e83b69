package validity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// view is a run as the rules look at it: gathered once.
type view struct {
	state   *results.State
	files   *bootFiles
	configs map[*side]kernelConfig // as far as they were asked for
	images  map[kernelKey]string   // SHA-256 of the kernel image; "" or absent: not known
	lanes   map[string]results.PlannedTarget
	cells   []cellView
	at      map[results.Cell]int // in cells: the first of a name
	sides   []*side              // kernels of targets, in the plan's order
	pairs   []pair
	// imported: nothing of the run was proven or probed.
	imported bool
}

type kernelKey struct{ target, kernel string }

// cellView is a cell with the trials that count.
type cellView struct {
	results.PlannedCell
	side   *side
	names  []string // of its metrics
	kind   kind
	trials []*results.Attempt
	boots  int
	// claimed: it is compared with another kernel, or was imported to be judged.
	claimed, imported bool
}

// side is a kernel of a target with its boots that are ok.
type side struct {
	target, kernel string
	boots          []*results.BootState
}

// pair is a kernel and the baseline it is compared with, both booted.
type pair struct{ kernel, base *side }

func newView(run *results.Run, s *results.State) *view {
	v := &view{state: s, files: newBootFiles(run), at: map[results.Cell]int{}, lanes: map[string]results.PlannedTarget{},
		configs: map[*side]kernelConfig{}, imported: run.Meta.Imported != nil}
	for _, t := range s.Plan.Targets {
		v.lanes[t.Name] = t
	}
	boots := map[kernelKey][]*results.BootState{}
	for _, b := range s.Model.Boots {
		if b.Result != nil && b.Result.Outcome == results.OK {
			k := kernelKey{b.Lane, b.Result.Kernel}
			boots[k] = append(boots[k], b)
		}
	}
	sides := map[kernelKey]*side{}
	sideOf := func(target, kernel string) *side {
		k := kernelKey{target, kernel}
		if sides[k] == nil {
			sides[k] = &side{target, kernel, boots[k]}
			v.sides = append(v.sides, sides[k])
		}
		return sides[k]
	}
	paired := map[[2]*side]bool{}
	for _, c := range cellsOf(s) {
		mine := sideOf(c.Target, c.Kernel)
		if _, ok := v.at[c.Cell]; !ok {
			v.at[c.Cell] = len(v.cells)
		}
		v.cells = append(v.cells, newCell(s, c, mine))
		if c.Baseline == "" || c.Baseline == c.Kernel {
			continue
		}
		base := sideOf(c.Target, c.Baseline)
		if k := [2]*side{mine, base}; !paired[k] && len(mine.boots) > 0 && len(base.boots) > 0 {
			paired[k] = true
			v.pairs = append(v.pairs, pair{mine, base})
		}
	}
	for i := range v.cells {
		c := &v.cells[i]
		c.imported, c.claimed = v.imported, c.claimed || v.imported
		if base := v.find(c, c.Baseline, c.Scenario); base != nil && base != c {
			c.claimed, base.claimed = true, true
		}
	}
	v.images = v.files.images()
	return v
}

// cellsOf are the planned cells; those of the journal where there is no plan.
func cellsOf(s *results.State) []results.PlannedCell {
	if len(s.Plan.Cells) > 0 {
		return s.Plan.Cells
	}
	var cells []results.PlannedCell
	for _, c := range s.Model.Cells() {
		cells = append(cells, results.PlannedCell{Cell: c})
	}
	return cells
}

func newCell(s *results.State, c results.PlannedCell, of *side) cellView {
	cell := cellView{PlannedCell: c, side: of}
	for _, b := range s.Model.ByBoot(c.Cell) {
		cell.trials = append(cell.trials, b.Trials...)
		cell.boots++
	}
	cell.names = cell.named(s.Plan.Metrics[c.Workload+"."+c.Scenario])
	cell.kind = kindOf(cell.names)
	return cell
}

// about is a finding about the cell.
func (c *cellView) about(text string) results.Found {
	return results.Found{Target: c.Target, Kernel: c.Kernel, Workload: c.Workload, Scenario: c.Scenario,
		Finding: results.Finding{Text: text}}
}

// about is a finding about the pair.
func (p pair) about(text string) results.Found {
	return results.Found{Target: p.kernel.target, Kernel: p.kernel.kernel, Against: p.base.kernel, Finding: results.Finding{Text: text}}
}

// about is a finding about a kernel of a target.
func (s *side) about(text string) results.Found {
	return results.Found{Target: s.target, Kernel: s.kernel, Finding: results.Finding{Text: text}}
}

// find is the cell of the same target and workload with another kernel and
// scenario, nil without one.
func (v *view) find(c *cellView, kernel, scenario string) *cellView {
	i, ok := v.at[results.Cell{Target: c.Target, Kernel: kernel, Workload: c.Workload, Scenario: scenario}]
	if !ok {
		return nil
	}
	return &v.cells[i]
}

// cpus of the target under this kernel; 0: not known, or not the same in all boots.
func (s *side) cpus() int {
	n := 0
	for _, b := range s.boots {
		switch k := b.Result.Record.CPUs; {
		case k == 0 || n != 0 && n != k:
			return 0
		default:
			n = k
		}
	}
	return n
}

// middle is the median over the cell's trials of a figure that not all need to
// have; n is how many have it.
func (c *cellView) middle(of func(*results.Attempt) (float64, bool)) (median float64, n int) {
	var x []float64
	for _, a := range c.trials {
		if f, ok := of(a); ok && stats.Num(f).OK() {
			x = append(x, f)
		}
	}
	if len(x) == 0 {
		return 0, 0
	}
	return stats.Quantile(x, 0.5), len(x)
}

// value is the median of a metric over the cell's trials.
func (c *cellView) value(metric string) (float64, bool) {
	x, n := c.middle(func(a *results.Attempt) (float64, bool) {
		v, why := a.Value(metric)
		return v.Value, why == ""
	})
	return x, n > 0
}

// named are the planned metrics, else those that the trials have.
func (c *cellView) named(planned []workloads.Metric) []string {
	var names []string
	for _, m := range planned {
		names = append(names, m.Name)
	}
	for _, a := range c.trials {
		if len(planned) > 0 || a.Parsed == nil {
			continue
		}
		for _, x := range a.Parsed.Values {
			if !slices.Contains(names, x.Name) {
				names = append(names, x.Name)
			}
		}
	}
	return names
}

// doubtfulShares begins the warning of an activity whose ticks do not add up.
const doubtfulShares = "CPU shares are doubtful"

// has reports whether the activity has all the vmstat columns, and shares of the
// CPU time that can be believed.
func has(a *results.Attempt, columns ...string) bool {
	return a.Summary != nil && a.Summary.Samples > 0 &&
		!slices.ContainsFunc(columns, func(c string) bool { return slices.Contains(a.Summary.Missing, c) }) &&
		!slices.ContainsFunc(a.Summary.Warnings, func(w string) bool { return strings.HasPrefix(w, doubtfulShares) })
}

// among are the distinct words that the boots give, in order of their number.
func (s *side) among(of func(*results.BootState) string) []string {
	n := map[string]int{}
	for _, b := range s.boots {
		if w := of(b); w != "" {
			n[w]++
		}
	}
	words := make([]string, 0, len(n))
	for w := range n {
		words = append(words, w)
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Or(cmp.Compare(n[b], n[a]), strings.Compare(a, b)) })
	return words
}

// short joins words, at most n of them.
func short(words []string, n int) string {
	if more := len(words) - n; more > 0 {
		return strings.Join(words[:n], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(words, ", ")
}
