package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

const watchTick = 500 * time.Millisecond // between looks at a journal

func (a *app) watchCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Follow a run that another process executes: a live view on a terminal, else a line per event",
		Long: `Follow a run that another process executes. RUN is a name, a unique beginning of one, a path, or "latest", which
it is where nothing is said.

On a terminal: a row per lane with what it does, for how long and how much is left, its outcomes so far, and what
it said last. Enter shows the console of a lane, l its log; s skips a trial, S a kernel, p pauses a lane, Q gives a
target up, x stops the run, and each of these asks first; ? lists the keys. q or Ctrl-C ends the watching only. When
the run has ended the view stays until q.

Elsewhere, with TERM=dumb or with --no-color: one line per event, until the run ends. With --json each record of the
journal is printed as it is, a line each.

The targets are not disturbed: what is shown is what the controller has recorded. Of a run that nobody executes the
status is printed, and that is all.

Exit status: 0 the run ended, was stopped, or goes on after q, 3 its controller died and it waits for resume.`,
		Example: "  kernsweep watch\n  kernsweep watch latest --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(append(args, "latest")[0])
			if err != nil {
				return err
			}
			return a.watch(c.Context(), run)
		},
	}
}

// watch shows what is recorded from now on.
func (a *app) watch(ctx context.Context, run *results.Run) error {
	s, err := a.status(run.Dir())
	if err != nil {
		return usage(err)
	}
	goesOn := s.State == "running" || s.State == "starting"
	if in, out, ok := a.whole(); ok && goesOn {
		return a.watchScreen(ctx, run, in, out)
	}
	if !a.json {
		a.printStatus(s, true)
	}
	return a.watchLines(ctx, run)
}

// watchLines prints what is recorded until the run ends.
func (a *app) watchLines(ctx context.Context, run *results.Run) error {
	w := live.Watch(run)
	show := a.showing(w)
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for first := true; ; first = false {
		recs, err := w.Look()
		if err != nil {
			return &statusError{exitInfra, err}
		}
		for _, rec := range recs {
			if !first { // past ones only count
				show(rec)
			}
		}
		if v := w.View(time.Now()); v.State != live.Executing && v.State != live.Starting {
			return a.watched(run, v.State)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watched says how a run that nobody executes any more stands.
func (a *app) watched(run *results.Run, state live.State) error {
	if state == live.ControlDied {
		return &statusError{exitInfra, fmt.Errorf("the controller of run %s died; %s goes on", paste.Word(run.Name()), a.command("resume", run))}
	}
	fmt.Fprintf(a.err, "run %s: %s; %s has what was measured\n", paste.Word(run.Name()), state, a.command("report", run))
	return nil
}

// showing is who shows a record.
func (a *app) showing(w *live.Watching) func(results.Record) {
	if a.json {
		e := json.NewEncoder(report.Inert(a.out))
		return func(rec results.Record) { _ = e.Encode(rec) } // an output that takes no more is the command's error
	}
	return w.Plain(a.out).Print
}
