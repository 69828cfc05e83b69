package main

import (
	"fmt"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// checkMore refuses what does not go with --more.
func (r *rerun) checkMore() error {
	switch {
	case r.more < 0 || r.more > mostBoots:
		return fmt.Errorf("--more %d: it must be from 1 to %d", r.more, mostBoots)
	case r.failed || r.alone:
		return fmt.Errorf("--more adds blocks, --failed and --only-failed-cells repeat some: give one of them")
	}
	return nil
}

// addBlocks is the plan of a session that adds blocks to the run.
func (a *app) addBlocks(lab *config.Lab, r *rerun) (*plan.Plan, error) {
	sessions := r.state.Model.Sessions
	if len(sessions) == 0 {
		return nil, usage(fmt.Errorf("%s has not begun: kernsweep resume %s measures what it planned", paste.Word(r.run.Name()), paste.Word(r.run.Name())))
	}
	baseline := map[results.Cell]string{}
	for _, c := range r.state.Plan.Cells {
		baseline[c.Cell] = c.Baseline
	}
	p, err := r.whole.More(lab, plan.Addition{Filter: r.Filter, Blocks: r.more, Session: len(sessions) + 1}, a.history(),
		func(c results.Cell) string { return baseline[c] })
	if err != nil {
		return nil, usage(err)
	}
	if len(p.Lanes) == 0 {
		return nil, usage(fmt.Errorf("nothing of %s is selected: no target has all of that", paste.Word(r.run.Name())))
	}
	if last := sessions[len(sessions)-1]; last.Ended.IsZero() || last.Interrupted {
		fmt.Fprintf(a.err, "%s did not come to its end: kernsweep resume %s goes on with it, also after these blocks\n", paste.Word(r.run.Name()), paste.Word(r.run.Name()))
	}
	for _, l := range p.Lanes {
		fmt.Fprintf(a.err, "adds %s to %s (%s, %s, about %s) as session %d\n", plural.Of(l.Rounds(), "block"), l.Target,
			plural.Of(len(l.Boots), "boot"), plural.Of(l.Measured(), "trial"), plan.Round(l.Estimate), len(sessions)+1)
	}
	return p, nil
}
