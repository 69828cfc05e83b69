package plan

import (
	"fmt"
	"slices"
	"strings"
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
	if gone := p.gone(lab, f, want); len(gone) > 0 {
		return nil, fmt.Errorf("the configuration has no %s, which the run used: give the configuration of that run with -f, or choose what is left by --target, --kernel and --workload",
			strings.Join(gone, ", no "))
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

// gone names what the selected part of the plan needs and lab does not have.
func (p *Plan) gone(lab *config.Lab, f Filter, want func(results.Slot) bool) []string {
	var out []string
	lacks := func(kind, name string, lacking bool) {
		if s := kind + " " + name; lacking && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			for _, s := range b.Trials {
				w := lab.Workload(s.Workload)
				switch {
				case !wanted(f.Targets, l.Target), !wanted(f.Kernels, b.Kernel), want != nil && !want(s):
				case w != nil && len(f.Workloads) > 0 && !slices.ContainsFunc(f.Workloads, func(p string) bool { return matchesWorkload(p, w) }):
				case w == nil && len(f.Workloads) > 0: // those that are chosen exist
				default:
					lacks("target", l.Target, lab.Target(l.Target) == nil)
					lacks("kernel", b.Kernel, lab.Kernel(b.Kernel) == nil)
					lacks("workload", s.Workload, w == nil)
				}
			}
		}
	}
	return out
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
