package main

import (
	"slices"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// historyRuns is how many of the newest runs the estimate looks at.
const historyRuns = 5

// history is how long boots and trials took in the newest runs. A run that
// cannot be read has no say in an estimate.
func (a *app) history() plan.History {
	h := plan.History{Boot: map[string]time.Duration{}, Trial: map[results.Cell]time.Duration{}}
	names, err := results.List(a.runs)
	if err != nil {
		return h
	}
	boots, trials := map[string][]time.Duration{}, map[results.Cell][]time.Duration{}
	for _, n := range names[max(0, len(names)-historyRuns):] {
		run, err := results.Find(a.runs, n)
		if err != nil {
			continue
		}
		s, err := run.State()
		if err != nil {
			continue
		}
		for _, b := range s.Model.Boots {
			if b.Result != nil && b.Result.Outcome == results.OK {
				if d, ok := b.Took(); ok {
					boots[b.Lane] = append(boots[b.Lane], d)
				}
			}
		}
		for _, t := range s.Model.Trials {
			if v := t.Valid(); v != nil {
				if d, ok := v.Took(); ok {
					trials[t.Slot.Cell] = append(trials[t.Slot.Cell], d+time.Second)
				}
			}
		}
		h.Runs++
	}
	for t, d := range boots {
		h.Boot[t] = middle(d)
	}
	for c, d := range trials {
		h.Trial[c] = middle(d)
	}
	return h
}

func middle(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
