package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

func (a *app) resumeCmd() *cobra.Command {
	var l later
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was interrupted, or whose controller died",
		Long: `Go on with a run that was interrupted, whose controller died, or that --until cut. RUN is a
name, a unique beginning of one, a path, or "latest".

What has a verdict keeps it. A trial whose agent finished or still runs on its target is taken over and judged;
any other that was open is repeated as a new attempt. A target that is still in the boot that was proven goes on
there; any other is booted anew. What failed is not repeated: that is what rerun --failed is for.`,
		Example: "  kernsweep resume latest",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			return a.resume(c, run, l)
		},
	}
	l.flags(c)
	return c
}

func (a *app) resume(c *cobra.Command, run *results.Run, l later) error {
	if err := notImported(run); err != nil {
		return err
	}
	if h, ok := run.HeldBy(); ok && h.Here() {
		return &statusError{exitInfra, &results.LockedError{Dir: run.Dir(), Holder: h, Hint: a.runsNow(run)}}
	}
	lab, err := a.load()
	if err != nil {
		return err
	}
	state, err := run.State()
	if err != nil {
		return err
	}
	whole, err := orchestrator.Planned(run, state.Model)
	if err != nil {
		return usage(err)
	}
	var again plan.Plan
	rerun, err := run.Rerun(state.Model, &again)
	if err != nil {
		return usage(err)
	}
	p := orchestrator.Remaining(lab, whole, state.Model, orchestrator.Rerun{Session: rerun, Plan: &again})
	if len(p.Lanes) == 0 && orderly(state.Model) {
		if h, _ := run.HeldBy(); h.PID != 0 {
			if err := a.tidy(c.Context(), run); err != nil {
				return &statusError{exitInfra, err}
			}
		}
		fmt.Fprintf(a.err, "nothing to resume: every trial of %s has its verdict\n", paste.Word(run.Name()))
		a.keepNoise(run) // should its controller have died just before
		return a.finish(run)
	}
	if _, err := p.Select(lab, plan.Filter{}, nil); err != nil {
		return usage(err)
	}
	return a.later(c.Context(), lab, p, run, l, beginning{resume: true, why: results.WhyResume, seen: len(state.Journal.Records)})
}

// tidy removes what a controller left beside the journal that died after its
// last record.
func (a *app) tidy(ctx context.Context, run *results.Run) error {
	w, err := a.openWriter(ctx, run)
	if err != nil {
		return err
	}
	return w.Close()
}

// orderly says that the newest controller of a run came to its end.
func orderly(m *results.Model) bool {
	return len(m.Sessions) > 0 && !m.Sessions[len(m.Sessions)-1].Ended.IsZero()
}
