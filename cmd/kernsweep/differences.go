package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/store"
)

// fromStore makes the lab boot for p what the run booted, before a later session
// of it. It warns of each difference since the run began, and gives them back for
// the journal; with strict it refuses them all. Nothing is contacted.
func (a *app) fromStore(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run, strict bool) ([]string, error) {
	diffs, err := a.differences(ctx, lab, p, run)
	if err != nil {
		return nil, err
	}
	if strict && len(diffs) > 0 {
		return nil, usage(fmt.Errorf("%s is left as it is, for %s not as when it began (--strict):\n  %s", paste.Word(run.Name()), are(len(diffs)),
			strings.Join(safe(diffs), "\n  ")))
	}
	for _, d := range diffs {
		fmt.Fprintln(a.err, "warning: "+live.Safe(d))
	}
	s, err := store.Open(filepath.Dir(run.Dir()))
	if err != nil {
		return nil, err
	}
	var lost *store.LostError
	switch err := s.Use(ctx, lab, p, run); {
	case errors.As(err, &lost):
		return nil, usage(err)
	case err != nil:
		return nil, err
	}
	return diffs, nil
}

// differences names what changed since the run began: kernsweep itself, its
// agents, images, and what the configuration says of what p uses.
func (a *app) differences(ctx context.Context, lab *config.Lab, p *plan.Plan, run *results.Run) ([]string, error) {
	var diffs []string
	if v := version(); v != run.Meta.Version {
		diffs = append(diffs, fmt.Sprintf("the run began with kernsweep %s, this is %s", run.Meta.Version, v))
	}
	s, err := store.Open(filepath.Dir(run.Dir()))
	if err != nil {
		return nil, err
	}
	diffs = append(diffs, s.AgentDifferences(ctx, run)...)
	more, err := store.Differences(ctx, lab, p, run)
	if err != nil {
		return nil, err
	}
	old, err := os.ReadFile(filepath.Join(run.Dir(), "testbeds.hcl"))
	if err == nil && !bytes.Equal(old, sourceCopy(lab)) {
		where := filepath.Join(run.Dir(), "testbeds.hcl")
		switch _, err := store.ReadKept(run.Dir()); {
		case errors.Is(err, os.ErrNotExist):
			diffs = append(diffs, fmt.Sprintf("the configuration is not the one the run began with, which is kept as %s", where))
		default:
			fmt.Fprintf(a.err, "the configuration's text has changed since the run began (kept as %s); of what is repeated, only what the warnings name is affected\n", where)
		}
	}
	return append(diffs, more...), nil
}

func are(n int) string {
	if n == 1 {
		return "1 thing is"
	}
	return fmt.Sprintf("%d things are", n)
}

func safe(list []string) []string {
	var out []string
	for _, s := range list {
		out = append(out, live.Safe(s))
	}
	return out
}
