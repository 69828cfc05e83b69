package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/live/story"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

func (a *app) logCmd() *cobra.Command {
	var o story.Options
	var follow bool
	c := &cobra.Command{
		Use:   "log TARGET [RUN]",
		Short: "The story of one target in a run: what was asked of it, and what it said, in order",
		Long: `The story of one target in a run: what was asked of it, phase by phase, trial, knob and recovery, and what it said, with
the time of day and the seconds since its boot was asked for. RUN is a name, a beginning of it, a path, or "latest"; without
it, the newest run that has the target. A run that goes on is told as far as it came.

Of a console that said much at once the middle is left out, with the file that has it; --console prints all of it.

Exit status: 0 the story was told, 2 there is no such run, target or boot, 3 a file of the run cannot be read.`,
		Example: "  kernsweep log ar2317\n  kernsweep log ar2317 --boot 7 --console\n  kernsweep log ar2317 latest --failed\n  kernsweep log ar2317 --follow",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if o.Boot < 0 || c.Flags().Changed("boot") && o.Boot == 0 {
				return usage(fmt.Errorf("--boot %d: boots are numbered from 1", o.Boot))
			}
			if follow && (o.Boot > 0 || o.Kernel != "" || o.Failed) {
				return usage(errors.New("--follow tells all that comes: leave out --boot, --kernel and --failed"))
			}
			run, err := a.runWith(args)
			if err != nil {
				return err
			}
			return a.log(c.Context(), run, args[0], o, follow)
		},
	}
	f := c.Flags()
	f.IntVar(&o.Boot, "boot", 0, "only this boot")
	f.StringVar(&o.Kernel, "kernel", "", "only boots of this kernel")
	f.BoolVar(&o.Failed, "failed", false, "only boots and trials that failed")
	f.BoolVar(&o.Console, "console", false, "the console whole")
	f.BoolVar(&follow, "follow", false, "go on as the run does, until it ends")
	return c
}

// runWith is the run that is named, or the newest that has the target.
func (a *app) runWith(args []string) (*results.Run, error) {
	if len(args) > 1 {
		return a.findRun(args[1])
	}
	names, err := results.List(a.runs)
	if err != nil {
		return nil, usage(err)
	}
	if len(names) == 0 {
		return nil, usage(fmt.Errorf("no runs in %s yet; start one with: %s run SWEEP", a.runs, a.kernsweep()))
	}
	var newest *results.Run
	for _, n := range slices.Backward(names) {
		run, err := results.Find(a.runs, n)
		if err != nil {
			continue
		}
		if newest == nil {
			newest = run
		}
		if _, err := os.Stat(run.LaneDir(args[0])); err == nil || slices.Contains(lanesOf(run), args[0]) {
			return run, nil
		}
	}
	if newest == nil {
		return nil, usage(fmt.Errorf("no run in %s can be read: %s says why", a.runs, a.kernsweep()+" status"))
	}
	return nil, a.noLane(newest, args[0], fmt.Sprintf("no run in %s has a target %q; the newest, %s,", a.runs, args[0], paste.Word(newest.Name())))
}

// lanesOf are the targets of a run's plan.
func lanesOf(run *results.Run) []string {
	p, err := run.ReadPlan(nil)
	if err != nil {
		return nil // a run without one is an import
	}
	return named(p.Targets, func(t results.PlannedTarget) string { return t.Name })
}

func (a *app) noLane(run *results.Run, target, text string) error {
	have := lanesOf(run)
	if len(have) == 0 {
		return usage(fmt.Errorf("%s has none", text))
	}
	return usage(fmt.Errorf("%s has %s", text, listed(have)))
}

// log tells the story, as far as it goes.
func (a *app) log(ctx context.Context, run *results.Run, target string, o story.Options, follow bool) error {
	j, err := run.Journal()
	if err != nil {
		return &statusError{exitInfra, err}
	}
	m := results.Load(j.Records)
	if m.Lane(target) == nil {
		if !slices.Contains(lanesOf(run), target) {
			return a.noLane(run, target, fmt.Sprintf("run %s has no target %q; it", paste.Word(run.Name()), target))
		}
		fmt.Fprintf(a.err, "nothing is recorded of %s in run %s yet\n", target, paste.Word(run.Name()))
	}
	if err := checkBoots(m, run, target, o); err != nil {
		return usage(err)
	}
	if !a.json {
		fmt.Fprintf(a.err, "%s in run %s, %s\n", target, paste.Word(run.Name()), sessionState(run, m))
	}
	for _, n := range j.Notes {
		fmt.Fprintln(a.err, "kernsweep: journal:", live.Safe(n))
	}
	lines, wrong := story.Tell(run, j.Records, target, o)
	tell := a.teller()
	for _, l := range lines {
		if err := tell(l); err != nil {
			return err
		}
	}
	if wrong != nil {
		return &statusError{exitInfra, wrong}
	}
	if len(lines) == 0 && o.Failed && !a.json {
		fmt.Fprintf(a.err, "nothing of it failed\n")
	}
	if !follow {
		return nil
	}
	return a.followLog(ctx, run, target, j.Records, tell)
}

// checkBoots refuses what the lane does not have.
func checkBoots(m *results.Model, run *results.Run, target string, o story.Options) error {
	var kernels []string
	last := 0
	for _, b := range m.Boots {
		if b.Lane == target {
			last = max(last, b.Number)
			if b.Result != nil && !slices.Contains(kernels, b.Result.Kernel) {
				kernels = append(kernels, b.Result.Kernel)
			}
		}
	}
	if o.Boot > 0 && m.Boot(target, o.Boot) == nil {
		if last == 0 {
			return fmt.Errorf("%s was not booted in run %s", target, paste.Word(run.Name()))
		}
		return fmt.Errorf("%s has no boot %d in run %s; the last is %d", target, o.Boot, paste.Word(run.Name()), last)
	}
	if o.Kernel != "" && len(kernels) > 0 && !slices.Contains(kernels, o.Kernel) {
		return fmt.Errorf("%s was not booted with a kernel %q in run %s; it was with %s", target, o.Kernel, paste.Word(run.Name()), listed(kernels))
	}
	return nil
}

// teller prints lines of a story: text, or an object for each with --json.
func (a *app) teller() func(story.Line) error {
	if a.json {
		e := json.NewEncoder(report.Inert(a.out))
		return func(l story.Line) error { return e.Encode(l) }
	}
	day, boot, width := "", 0, foldWidth(rawOutput(a.out))
	return func(l story.Line) error {
		var b strings.Builder
		at := l.At.Local()
		if d := at.Format("2006-01-02"); d != day {
			fmt.Fprintf(&b, "%s\n", d)
			day = d
		}
		if l.Boot != boot {
			b.WriteString("\n")
			boot = l.Boot
		}
		since := "        "
		if l.Boot > 0 {
			since = fmt.Sprintf("%+7.1fs", l.SinceS)
		}
		mark := "   "
		switch {
		case l.Kind == story.Console && l.Bad:
			mark = "!| "
		case l.Kind == story.Console, l.Kind == story.Output:
			mark = " | "
		case l.Kind == story.Left:
			mark = " … "
		case l.Bad:
			mark = "!  "
		}
		line := fmt.Sprintf("%s %s %s%s", at.Format("15:04:05"), since, mark, l.Text)
		b.WriteString(live.Fold(line, width, strings.Repeat(" ", len("15:04:05 +0000.0s !  "))) + "\n")
		_, err := io.WriteString(a.out, b.String())
		return err
	}
}

const followTick = 300 * time.Millisecond // between looks at a run that goes on

// followLog tells what comes, until the run is over. It is told as it arrives.
func (a *app) followLog(ctx context.Context, run *results.Run, target string, before []results.Record, tell func(story.Line) error) error {
	f := story.Follow(run, target, before)
	tick := time.NewTicker(followTick)
	defer tick.Stop()
	for {
		_, held := run.HeldBy() // before the look: what it wrote last is seen
		lines, err := f.Next(time.Now())
		for _, l := range lines {
			if e := tell(l); e != nil {
				return e
			}
		}
		if err != nil {
			return &statusError{exitInfra, err}
		}
		if !held {
			fmt.Fprintf(a.err, "run %s goes on no more; %s\n", paste.Word(run.Name()), a.command("status", run))
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil // to stop looking is no failure
			}
			return context.Cause(ctx)
		}
	}
}
