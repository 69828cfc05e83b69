package plan

import (
	"slices"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
)

// Select narrows an existing plan to what a rerun asks for: boots without a
// wanted trial are left out, and a wanted trial brings its warm-up along. want
// may be nil.
func (p *Plan) Select(lab *config.Lab, f Filter, want func(results.Slot) bool) (*Plan, error) {
	if err := f.check(lab); err != nil {
		return nil, err
	}
	out := *p
	out.Lanes = nil
	for _, l := range p.Lanes {
		if !wanted(f.Targets, l.Target) {
			continue
		}
		n := Lane{Target: l.Target}
		for _, b := range l.Boots {
			if !wanted(f.Kernels, b.Kernel) {
				continue
			}
			all := len(b.Trials)
			b.Trials = selectTrials(lab, b.Trials, f, want)
			if len(b.Trials) == 0 {
				continue
			}
			b.Estimate = b.Estimate * time.Duration(len(b.Trials)) / time.Duration(all)
			n.Estimate += b.Estimate
			n.Boots = append(n.Boots, b)
		}
		if len(n.Boots) > 0 {
			out.Lanes = append(out.Lanes, n)
		}
	}
	return &out, nil
}

func selectTrials(lab *config.Lab, slots []results.Slot, f Filter, want func(results.Slot) bool) []results.Slot {
	chosen := map[results.Cell]bool{}
	keep := func(s results.Slot) bool {
		w := lab.Workload(s.Workload)
		if w == nil || len(f.Workloads) > 0 && !slices.ContainsFunc(f.Workloads, func(p string) bool { return matchesWorkload(p, w) }) {
			return false
		}
		return want == nil || want(s)
	}
	for _, s := range slots {
		if s.Repeat > 0 && keep(s) {
			chosen[s.Cell] = true
		}
	}
	var out []results.Slot
	for _, s := range slots {
		if s.Repeat > 0 && keep(s) || s.Repeat <= 0 && chosen[s.Cell] {
			out = append(out, s)
		}
	}
	return out
}
