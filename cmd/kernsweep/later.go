package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// later is what the commands share that begin a later session of a run.
type later struct {
	strict bool
	until  string
}

func (l *later) flags(c *cobra.Command) {
	c.Flags().BoolVar(&l.strict, "strict", false, "refuse when anything differs from the run's beginning")
	untilFlag(c, &l.until)
}

// later begins a later session of a run, with the run's own images and agents.
func (a *app) later(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run, l later, b beginning) error {
	diffs, err := a.fromStore(ctx, lab, p, run, l.strict)
	if err != nil {
		return err
	}
	if err := a.notReady(lab, p); err != nil {
		return err
	}
	if b.fits, err = a.beginUntil(lab, p, l.until); err != nil {
		return err
	}
	b.until = b.fits.Until
	release, err := a.claim(ctx, lab, p)
	if err != nil {
		return err
	}
	defer release()
	if b.seen, err = a.noteAll(ctx, run, b.seen, diffs); err != nil {
		return &statusError{exitInfra, err}
	}
	return a.execute(ctx, lab, p, run, b)
}

// noteAll leaves the differences in the journal, and says how many records it
// holds then. had is how many it held when the rerun was planned.
func (a *app) noteAll(ctx context.Context, run *results.Run, had int, notes []string) (int, error) {
	if len(notes) == 0 {
		return had, nil
	}
	w, err := a.openWriter(ctx, run)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	if n := len(w.Before.Records); n != had {
		return 0, fmt.Errorf("run %s went on while this was planned (%d records, now %d): give the command again", paste.Word(run.Name()), had, n)
	}
	for _, n := range notes {
		if _, err := w.Append(ctx, results.Record{Kind: results.KindNote, Note: "since the run began: " + n}); err != nil {
			return 0, err
		}
	}
	j, err := run.Journal()
	if err != nil {
		return 0, err
	}
	return len(j.Records), nil
}
