package orchestrator

import (
	"encoding/json"
	"fmt"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// Planned is what a run asks for by now: its plan with the blocks that later
// sessions added, without those that lanes left out because they had enough. Of a
// run without a plan the error is fs.ErrNotExist.
func Planned(run *results.Run, m *results.Model) (*plan.Plan, error) {
	var p plan.Plan
	if _, err := run.ReadPlan(&p); err != nil {
		return nil, err
	}
	added, _ := run.SessionPlans(m) // what cannot be read is a note of the state
	for _, raw := range added {
		var later plan.Plan
		if err := json.Unmarshal(raw, &later); err != nil {
			return nil, fmt.Errorf("run %s: the plan of a later session is damaged: %w", run.Name(), err)
		}
		p.Add(&later)
	}
	enough := map[string]int{}
	for _, l := range m.Lanes {
		if l.Enough != nil {
			enough[l.Name] = l.Enough.Blocks
		}
	}
	p.Without(enough)
	return &p, nil
}
