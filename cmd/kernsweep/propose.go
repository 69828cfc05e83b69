package main

import (
	"slices"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// proposalRuns is how many of a sweep's newest runs are looked at for how much
// its figures vary.
const proposalRuns = 10

// proposals say how many boots and repeats a plan's sweep needs, by its newest
// runs; of each workload the newest that tells.
func (a *app) proposals(lab *config.Lab, p *plan.Plan) []plan.Proposal {
	names, err := results.List(a.runs)
	if err != nil {
		return nil
	}
	var out []plan.Proposal
	left, h := proposalRuns, a.history()
	for _, n := range slices.Backward(names) {
		run, err := results.Find(a.runs, n)
		if err != nil || run.Meta.Sweep != p.Sweep || run.Meta.Imported != nil {
			continue
		}
		if left--; left < 0 {
			break
		}
		s, err := run.State()
		if err != nil {
			continue // one that cannot be read says nothing
		}
		out = append(out, p.Propose(lab, run.Name(), s, h, out)...)
	}
	return out
}

// pilotTakes is how long a pilot of a plan's sweep would take, in words.
func (a *app) pilotTakes(lab *config.Lab, p *plan.Plan, f plan.Filter) string {
	f, err := a.chosen(lab, f)
	if err != nil {
		return "a small run of all cells"
	}
	pilot, err := plan.Pilot().Expand(lab, lab.Sweep(p.Sweep), p.Seed, f, a.history())
	if err != nil {
		return "a small run of all cells"
	}
	return pilot.Takes()
}
