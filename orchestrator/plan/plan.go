// Package plan expands a sweep into lanes, blocks, boots and trials. It is pure:
// the same lab, sweep, seed and history give the same plan, and nothing is
// contacted.
package plan

import (
	"fmt"
	"slices"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
)

// Plan is what a run executes. It is written as plan.json.
type Plan struct {
	Sweep  string `json:"sweep"`
	Seed   int64  `json:"seed"`
	Repeat int    `json:"repeat"`
	Warmup int    `json:"warmup"`
	Blocks int    `json:"blocks"`
	// BootFailures is how often one kernel may fail to boot on one target
	// before the rest of its blocks are skipped there.
	BootFailures int               `json:"boot_failures"`
	Baseline     map[string]string `json:"baseline"` // target -> kernel
	Lanes        []Lane            `json:"lanes"`
	NA           []NA              `json:"na,omitempty"`
	// Warnings are what a person should know before the night. Those about one
	// target begin with "target NAME: ".
	Warnings []string       `json:"warnings,omitempty"`
	Design   results.Design `json:"design"`
	Family   int            `json:"family,omitempty"` // primary comparisons
}

// Lane is the part of a plan that belongs to one target.
type Lane struct {
	Target   string        `json:"target"`
	Boots    []Boot        `json:"boots"`
	Estimate time.Duration `json:"estimate"`
}

// Boot is one planned start of a kernel and the trials inside it, in order.
type Boot struct {
	Number   int            `json:"number"` // within the lane, from 1
	Block    int            `json:"block"`  // from 1
	Kernel   string         `json:"kernel"`
	Trials   []results.Slot `json:"trials"`
	Estimate time.Duration  `json:"estimate"`
}

// NA is a cell that cannot be had, with the reason.
type NA struct {
	results.Cell
	Reason string `json:"reason"`
}

// Trials counts the planned trials.
func (p *Plan) Trials() int {
	n := 0
	for _, l := range p.Lanes {
		for _, b := range l.Boots {
			n += len(b.Trials)
		}
	}
	return n
}

// Boots counts the planned boots.
func (p *Plan) Boots() int {
	n := 0
	for _, l := range p.Lanes {
		n += len(l.Boots)
	}
	return n
}

// Estimate is the length of the longest lane: lanes run side by side.
func (p *Plan) Estimate() time.Duration {
	var d time.Duration
	for _, l := range p.Lanes {
		d = max(d, l.Estimate)
	}
	return d
}

// Filter narrows a sweep; an empty list means all.
type Filter struct {
	Targets, Kernels, Workloads []string
}

// check refuses names that the lab does not have.
func (f Filter) check(lab *config.Lab) error {
	for _, n := range f.Targets {
		if lab.Target(n) == nil {
			return fmt.Errorf("no target named %q; the lab has %s", n, names(lab.Targets, func(t *config.Target) string { return t.Name }))
		}
	}
	for _, n := range f.Kernels {
		if lab.Kernel(n) == nil {
			return fmt.Errorf("no kernel named %q; the lab has %s", n, names(lab.Kernels, func(k *config.Kernel) string { return k.Name }))
		}
	}
	for _, n := range f.Workloads {
		if !slices.ContainsFunc(lab.Workloads, func(w *config.Workload) bool { return matchesWorkload(n, w) }) {
			return fmt.Errorf("no workload named %q; the lab has %s", n, names(lab.Workloads, (*config.Workload).ID))
		}
	}
	return nil
}

// matchesWorkload accepts KIND, KIND.NAME and NAME.
func matchesWorkload(pattern string, w *config.Workload) bool {
	return pattern == w.ID() || pattern == w.Kind || pattern == w.Name
}

func names[T any](list []T, name func(T) string) string {
	s := ""
	for i, x := range list {
		if i > 0 {
			s += ", "
		}
		s += name(x)
	}
	if s == "" {
		return "none"
	}
	return s
}

// History is what earlier runs took, for the estimate. Missing entries fall
// back to declared durations.
type History struct {
	Boot  map[string]time.Duration       // by target
	Trial map[results.Cell]time.Duration // by cell
	Runs  int
}
