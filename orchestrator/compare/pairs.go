package compare

import (
	"cmp"
	"fmt"
	"slices"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// group are the cells of one target, workload and scenario.
type group struct {
	target, workload, scenario string
	kernels                    []string          // in the plan's order
	declared                   map[string]string // baseline of a kernel, by its matrix
	baseline                   string            // of kernels without one
	guessed                    bool              // the plan names no baseline at all
}

// against is the kernel that a kernel is compared with; itself: it is a baseline.
func (g *group) against(kernel string) string { return cmp.Or(g.declared[kernel], g.baseline) }

func (g *group) cell(kernel string) results.Cell {
	return results.Cell{Target: g.target, Kernel: kernel, Workload: g.workload, Scenario: g.scenario}
}

// groups are the planned cells and those that only the journal has, by what may
// be compared.
func groups(s *results.State) []*group {
	var out []*group
	at := map[[3]string]*group{}
	add := func(c results.Cell, baseline string) {
		k := [3]string{c.Target, c.Workload, c.Scenario}
		g := at[k]
		if g == nil {
			g = &group{target: c.Target, workload: c.Workload, scenario: c.Scenario, declared: map[string]string{}}
			at[k] = g
			out = append(out, g)
		}
		if !slices.Contains(g.kernels, c.Kernel) {
			g.kernels = append(g.kernels, c.Kernel)
		}
		g.declared[c.Kernel] = cmp.Or(g.declared[c.Kernel], baseline)
		g.baseline = cmp.Or(g.baseline, baseline)
	}
	for _, c := range s.Plan.Cells {
		add(c.Cell, c.Baseline)
	}
	for _, c := range s.Model.Cells() {
		add(c, "")
	}
	for _, g := range out {
		if g.baseline == "" {
			g.baseline, g.guessed = firstKernel(s, g.kernels), true
		}
	}
	return out
}

// firstKernel is the first of kernels in the sweep's order, else as they came.
func firstKernel(s *results.State, kernels []string) string {
	for _, k := range s.Plan.Kernels {
		if slices.Contains(kernels, k.Name) {
			return k.Name
		}
	}
	return kernels[0]
}

// metricsOf are those of a workload's scenario: the plan's, else what its trials
// gave.
func metricsOf(s *results.State, cells ...results.Cell) []workloads.Metric {
	for _, c := range cells {
		if m := s.Plan.Metrics[c.Workload+"."+c.Scenario]; len(m) > 0 {
			return m
		}
	}
	var out []workloads.Metric
	seen := map[string]bool{}
	for _, c := range cells {
		for _, t := range s.Model.TrialsOf(c) {
			a := t.Valid()
			if a == nil || a.Parsed == nil {
				continue
			}
			for _, v := range a.Parsed.Values {
				if !seen[v.Name] {
					seen[v.Name] = true
					out = append(out, v.Metric)
				}
			}
		}
	}
	return out
}

// primaries tells the primary comparisons, and which declarations met one.
type primaries struct {
	design results.Design
	used   map[string]bool
}

func (p *primaries) is(workload, scenario string, m workloads.Metric) bool {
	for _, d := range p.design.Declared(workload, scenario, m) {
		p.used[d] = true
	}
	return p.design.Decides(workload, scenario, m)
}

// unused says which declarations met nothing.
func (p *primaries) unused() []string {
	var notes []string
	for _, d := range p.design.Primary {
		if !p.used[d] {
			notes = append(notes, fmt.Sprintf("declared as primary, but nothing that can be compared has that name: %s", d))
		}
	}
	return notes
}
