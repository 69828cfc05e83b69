package importer

import (
	"slices"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// summary is the plan's: what the files hold, added to what the run had.
func (m *Import) summary(p results.PlanSummary, laid []*boot) results.PlanSummary {
	if p.Sweep == "" {
		p.Sweep = m.o.Name
		p.Design = results.Design{Order: m.order()}
	}
	p.Metrics = cloneMetrics(p.Metrics)
	for _, c := range m.cells {
		if !slices.ContainsFunc(p.Targets, func(t results.PlannedTarget) bool { return t.Name == c.Target }) {
			p.Targets = append(p.Targets, results.PlannedTarget{Name: c.Target})
		}
	}
	for _, k := range m.kernels() {
		i := slices.IndexFunc(p.Kernels, func(x results.PlannedKernel) bool { return x.Name == k })
		if i < 0 {
			i = len(p.Kernels)
			p.Kernels = append(p.Kernels, results.PlannedKernel{Name: k})
		}
		if s := m.told[k].scheduler; s != "" {
			p.Kernels[i].Scheduler = s
		}
	}
	for i := range p.Targets {
		for _, b := range laid {
			if b.target == p.Targets[i].Name {
				p.Targets[i].Boots++
			}
		}
	}
	m.promise(&p)
	m.plannedCells(&p, laid)
	return p
}

func cloneMetrics(old map[string][]workloads.Metric) map[string][]workloads.Metric {
	out := map[string][]workloads.Metric{}
	for k, v := range old {
		out[k] = slices.Clone(v)
	}
	return out
}

// promise lists the metrics of each workload and scenario, in the files' order.
func (m *Import) promise(p *results.PlanSummary) {
	seen := map[string]map[int32]bool{}
	for i := range m.trials {
		c := m.cells[m.trials[i].cell]
		id := c.Workload + "." + c.Scenario
		if seen[id] == nil {
			seen[id] = map[int32]bool{}
		}
		for _, v := range m.of(&m.trials[i]) {
			if seen[id][v.metric] {
				continue
			}
			seen[id][v.metric] = true
			x := m.metric[v.metric]
			if !slices.ContainsFunc(p.Metrics[id], func(y workloads.Metric) bool { return y.Name == x.Name }) {
				p.Metrics[id] = append(p.Metrics[id], x)
			}
		}
	}
}

// plannedCells are every kernel in every workload and scenario of a target, so
// that what is missing is seen.
func (m *Import) plannedCells(p *results.PlanSummary, laid []*boot) {
	boots, trials := map[results.Cell]map[int]bool{}, map[results.Cell]int{}
	for _, b := range laid {
		for _, i := range b.trials {
			c := m.cells[m.trials[i].cell]
			if boots[c] == nil {
				boots[c] = map[int]bool{}
			}
			boots[c][b.number] = true
			trials[c]++
		}
	}
	at := map[results.Cell]int{}
	for i, c := range p.Cells {
		at[c.Cell] = i
	}
	for _, place := range m.places() {
		for _, k := range m.kernels() {
			c := place
			c.Kernel = k
			i, ok := at[c]
			if !ok {
				i, at[c] = len(p.Cells), len(p.Cells)
				p.Cells = append(p.Cells, results.PlannedCell{Cell: c, Baseline: m.o.Baseline})
			}
			x := &p.Cells[i]
			n := len(boots[c])
			switch {
			case n > 0 && x.Boots > 0:
				x.NA, x.Boots, x.Repeat = "", x.Boots+n, min(x.Repeat, max(1, trials[c]/n))
			case n > 0:
				x.NA, x.Boots, x.Repeat = "", n, max(1, trials[c]/n)
				if trials[c]/n > series {
					x.Repeat = 1
				}
			case x.Boots == 0 && !m.dead(k):
				if x.NA = m.nas[c]; x.NA == "" {
					x.NA = "the imported files have no figure of it"
				}
			}
		}
	}
}

func (m *Import) dead(kernel string) bool {
	return slices.ContainsFunc(m.o.DidNotBoot, func(d Dead) bool { return d.Kernel == kernel })
}

// places are the cells without their kernels, in order.
func (m *Import) places() []results.Cell {
	var out []results.Cell
	for _, c := range m.cells {
		if c.Kernel = ""; !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
