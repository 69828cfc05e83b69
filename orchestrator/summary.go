package orchestrator

import (
	"slices"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Summary is what a report needs to know of a plan.
func Summary(lab *config.Lab, p *plan.Plan) results.PlanSummary {
	s := results.PlanSummary{Sweep: p.Sweep, Seed: p.Seed, Design: p.Design, Metrics: map[string][]workloads.Metric{}}
	for _, l := range p.Lanes {
		s.Targets = append(s.Targets, plannedTarget(lab.Target(l.Target), len(l.Boots)))
	}
	naReason := map[results.Cell]string{}
	for _, n := range p.NA {
		naReason[n.Cell] = n.Reason
	}
	boots := cellBoots(p)
	sweep := lab.Sweep(p.Sweep)
	seen := map[results.Cell]bool{}
	for _, m := range sweep.Matrices {
		for _, t := range m.Targets {
			for _, k := range m.Kernels {
				for _, id := range m.Workloads {
					for _, sc := range lab.Workload(id).Scenarios {
						c := results.Cell{Target: t, Kernel: k, Workload: id, Scenario: sc.Name}
						if seen[c] || boots[c] == 0 && naReason[c] == "" {
							continue
						}
						seen[c] = true
						s.Cells = append(s.Cells, results.PlannedCell{Cell: c, Baseline: m.Baseline, Boots: boots[c],
							Repeat: p.Repeat, Warmup: p.Warmup, NA: naReason[c]})
						s.Metrics[id+"."+sc.Name] = sc.Run.Metrics()
						addKernel(&s, lab.Kernel(k))
					}
				}
			}
		}
	}
	return s
}

func plannedTarget(t *config.Target, boots int) results.PlannedTarget {
	tr := targets.TraitsOf(t.Boot)
	n := t.Network
	if d, ok := t.Boot.(targets.Networker); ok {
		n = d.Network()
	}
	return results.PlannedTarget{Name: t.Name, Arch: t.Arch, Boot: t.BootKind, Emulated: tr.Emulated, HostBound: tr.HostBound,
		Clock: n.Clock, Boots: boots, KnownGood: t.KnownGood}
}

func addKernel(s *results.PlanSummary, k *config.Kernel) {
	if slices.ContainsFunc(s.Kernels, func(p results.PlannedKernel) bool { return p.Name == k.Name }) {
		return
	}
	s.Kernels = append(s.Kernels, results.PlannedKernel{Name: k.Name, Scheduler: k.Scheduler, Release: k.Release})
}

// cellBoots counts in how many planned boots each cell has trials that count.
func cellBoots(p *plan.Plan) map[results.Cell]int {
	n := map[results.Cell]int{}
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			in := map[results.Cell]bool{}
			for _, s := range b.Trials {
				if s.Repeat > 0 && !in[s.Cell] {
					in[s.Cell] = true
					n[s.Cell]++
				}
			}
		}
	}
	return n
}
