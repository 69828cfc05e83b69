package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

const watchTick = 500 * time.Millisecond // between looks at a journal

func (a *app) watchCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "watch [RUN]",
		Short: "Follow a run that another process executes, a line per event, until it ends",
		Long: `Follow a run that another process executes, a line per event, until it ends. RUN is a name, a unique beginning
of one, a path, or "latest", which it is where nothing is said. The run is not disturbed: its journal is read, and
Ctrl-C ends the watching only. With --json each record of the journal is printed as it is, a line each.

Exit status: 0 the run ended or was stopped, 3 its controller died and it waits for resume.`,
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
	if !a.json {
		a.printStatus(s, true)
	}
	w := &watcher{run: run, observe: a.watching(run)}
	live, err := w.look()
	tick := time.NewTicker(watchTick)
	defer tick.Stop()
	for err == nil && live {
		select {
		case <-tick.C:
			live, err = w.look()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err != nil {
		return &statusError{exitInfra, err}
	}
	if w.state == "died without a word" {
		return &statusError{exitInfra, fmt.Errorf("the controller of run %s died; %s goes on", run.Name(), a.command("resume", run))}
	}
	fmt.Fprintf(a.err, "run %s: %s; %s has what was measured\n", run.Name(), w.state, a.command("report", run))
	return nil
}

// watching is who shows the records; past ones only count.
func (a *app) watching(run *results.Run) func(rec results.Record, past bool) {
	if a.json {
		e := json.NewEncoder(report.Inert(a.out))
		return func(rec results.Record, past bool) {
			if !past {
				_ = e.Encode(rec) // an output that takes no more is the command's error
			}
		}
	}
	var p plan.Plan
	_, _ = run.ReadPlan(&p) // without it the time left is not known
	t := live.NewTracker(time.Now(), rows(&p))
	view := &live.Plain{W: a.out, Tracker: t}
	return func(rec results.Record, past bool) {
		if past {
			t.Observe(rec)
		} else {
			view.Observe(rec)
		}
	}
}

// watcher reads a journal as it grows.
type watcher struct {
	run     *results.Run
	observe func(rec results.Record, past bool)

	begun bool
	size  int64
	seq   int // of the last record shown
	state string
}

// look shows what is new, and says whether more may come. Who holds the run is
// asked first: what was recorded before it let go is read after.
func (w *watcher) look() (more bool, err error) {
	_, held := w.run.HeldBy()
	info, err := os.Stat(filepath.Join(w.run.Dir(), "journal.jsonl"))
	if err != nil {
		return false, fmt.Errorf("run %s: its journal cannot be read any more: %w", w.run.Name(), err)
	}
	if w.begun && held && info.Size() == w.size {
		return true, nil
	}
	j, err := w.run.Journal()
	if err != nil {
		return false, err
	}
	for _, rec := range j.Records {
		if rec.Seq > w.seq {
			w.seq = rec.Seq
			w.observe(rec, !w.begun)
		}
	}
	w.begun, w.size = true, info.Size()
	w.state = sessionState(w.run, results.Load(j.Records))
	return held && (w.state == "running" || w.state == "starting"), nil
}
