package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/notify"
	"kernsweep/orchestrator/results"
)

const notifyTestTime = time.Minute // for all blocks of a sweep

// notifier is whoever tells people about a run, as its sweep's notify blocks ask.
func (a *app) notifier(lab *config.Lab, run *results.Run, note func(string)) *notify.Center {
	var blocks []notify.Block
	if s := lab.Sweep(run.Meta.Sweep); s != nil {
		blocks = s.Notify
	}
	err := a.err // the run's own, not what follows it
	return notify.New(a.about(run), blocks, func(s string) {
		s = live.Safe(s)
		note("warning: " + s)
		fmt.Fprintln(err, "warning: "+s)
	})
}

func (a *app) about(run *results.Run) notify.Run {
	host, _ := os.Hostname()
	dir, err := filepath.Abs(run.Dir())
	if err != nil {
		dir = run.Dir()
	}
	return notify.Run{Sweep: run.Meta.Sweep, Name: run.Name(), Dir: dir, Controller: host, Kernsweep: a.kernsweep()}
}

// tellEnd tells how a session of the run ended; verdict is its error.
func (a *app) tellEnd(ctx context.Context, c *notify.Center, run *results.Run, verdict error) {
	end := notify.End{Model: results.Load(nil), ExitStatus: statusOf(verdict), Report: filepath.Join(run.Dir(), "report.txt")}
	if abs, err := filepath.Abs(end.Report); err == nil {
		end.Report = abs
	}
	if _, err := os.Stat(end.Report); err != nil {
		end.Report = ""
	}
	if state, err := run.State(); err == nil {
		end.Model = state.Model
	}
	if s, err := a.status(run.Dir()); err == nil {
		end.Next, end.Missing = s.Next, s.Missing
		if end.Next == "" { // our own process still holds the run
			end.Next = a.command("resume", run)
		}
	}
	switch {
	case ctx.Err() != nil:
		end.Interrupted, end.Why = true, context.Cause(ctx).Error()
	case end.ExitStatus == exitInfra && verdict.Error() != "" && errors.Unwrap(verdict) != nil:
		end.Interrupted, end.Why = true, verdict.Error()
	}
	c.Finish(ctx, end)
}

// statusOf is the exit status that an error of a command gives.
func statusOf(err error) int {
	var s *statusError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return s.status
	}
	return exitInfra
}

func (a *app) notifyCmd() *cobra.Command {
	c := &cobra.Command{Use: "notify", Short: "Try the notify blocks of a sweep"}
	c.AddCommand(&cobra.Command{
		Use:     "test SWEEP",
		Short:   "Send a test message through every notify block of a sweep",
		Long:    "Send a test message through every notify block of a sweep, once, and say which of them arrived as far as\ncan be known here. No target is contacted. Exit status: 0 all were taken, 1 one was not.",
		Example: "  kernsweep notify test overnight",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			lab, err := a.load()
			if err != nil {
				return err
			}
			s := lab.Sweep(args[0])
			switch {
			case s == nil:
				return usage(fmt.Errorf("%s has no sweep %q", a.file, args[0]))
			case len(s.Notify) == 0:
				return usage(fmt.Errorf("sweep %q has no notify block", s.Name))
			}
			return a.tryNotify(c.Context(), s)
		},
	})
	return c
}

// tryNotify sends a test message through every block, all at the same time.
func (a *app) tryNotify(ctx context.Context, s *config.Sweep) error {
	ctx, stop := context.WithTimeoutCause(ctx, notifyTestTime, fmt.Errorf("not done within %s", notifyTestTime))
	defer stop()
	host, _ := os.Hostname()
	errs := make([]error, len(s.Notify))
	var all sync.WaitGroup
	for i, b := range s.Notify {
		all.Go(func() {
			errs[i] = notify.SendTest(ctx, notify.Run{Sweep: s.Name, Controller: host, Kernsweep: a.kernsweep()}, b)
		})
	}
	all.Wait()
	failed := 0
	for i, b := range s.Notify {
		if errs[i] == nil {
			fmt.Fprintf(a.out, "%s: sent\n", b)
			continue
		}
		failed++
		fmt.Fprintf(a.out, "%s: NOT sent: %s\n", b, live.Safe(errs[i].Error()))
	}
	if failed > 0 {
		return &statusError{status: exitFailed}
	}
	return nil
}
