package main

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
)

// chosen is f with the names of the targets that its patterns choose.
func (a *app) chosen(lab *config.Lab, f plan.Filter) (plan.Filter, error) {
	if len(f.Targets) == 0 {
		return f, nil
	}
	list, err := lab.Choose(f.Targets...)
	if err != nil {
		return f, usage(fmt.Errorf("--target: %s: %w", a.file, err))
	}
	f.Targets = named(list, func(t *config.Target) string { return t.Name })
	return f, nil
}

// choose puts the names of the run's own targets in the place of patterns. Names
// stay: whether the run has them is the plan's to say.
func (r *rerun) choose(lab *config.Lab) error {
	if !slices.ContainsFunc(r.Targets, func(s string) bool { return strings.ContainsAny(s, ",!*?[:") || s == "all" }) {
		return nil
	}
	list, err := lab.Choose(r.Targets...)
	if err != nil {
		return usage(fmt.Errorf("--target: %w", err))
	}
	asked := r.Targets
	r.Targets = nil
	var lanes []string
	for _, l := range r.whole.Lanes {
		lanes = append(lanes, l.Target)
		if slices.ContainsFunc(list, func(t *config.Target) bool { return t.Name == l.Target }) {
			r.Targets = append(r.Targets, l.Target)
		}
	}
	if len(r.Targets) == 0 {
		return usage(fmt.Errorf("--target %s: the run has none of these targets; it has %s", strings.Join(asked, " "), strings.Join(lanes, ", ")))
	}
	return nil
}
