package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

// laneCall is one command line of lane.
type laneCall struct {
	control.Request
	run string // "" = the one that is being executed
}

func (a *app) laneCmd() *cobra.Command {
	var l laneCall
	c := &cobra.Command{
		Use:   "lane LANE pause|go-on|skip-trial|skip-kernel|quarantine",
		Short: "Steer one lane of a run that goes on: pause it, skip a trial or a kernel, give its target up",
		Long: `Steer one lane of a run that goes on, in this or any other process of the same user. A lane has the name of its target.

  pause        nothing more begins in the lane; what runs ends as it would. Its target stays leased, and what would
               not be over before --until is left out
  go-on        ends a pause
  skip-trial   ends the trial that runs, or skips the next one where none does; the lane goes on with the next
  skip-kernel  ends the boot and the trial of the kernel that runs, or of --kernel, and leaves out all that is left of it
  quarantine   gives the target up: what runs is ended, what is left is skipped, and the target brought back to its
               known-good kernel

What is skipped by hand is nobody's failure: it does not change the run's exit status, and status and report say who
skipped it. resume leaves it skipped, rerun --failed measures it. A resumed run is not paused any more.

Without --run it is the run that is being executed. Exit status: 0 it is done, or is being done; 2 wrong usage, or the
controller refuses and says why; 3 nobody executes the run.`,
		Example: "  kernsweep lane wl500gpv2 pause --why 'somebody works at the switch'\n  kernsweep lane wl500gpv2 go-on\n" +
			"  kernsweep lane wl500gpv2 skip-kernel --kernel bfs",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			l.Lane, l.Action, l.By = args[0], control.Action(args[1]), who()+", kernsweep lane"
			return a.steerLane(c.Context(), l)
		},
	}
	f := c.Flags()
	f.StringVar(&l.run, "run", "", "the run, where several are being executed")
	f.StringVar(&l.Kernel, "kernel", "", "of skip-kernel: the kernel, where it is not the one that runs")
	f.StringVar(&l.Why, "why", "", "the reason, for the journal and the report")
	return c
}

// laneActions are those of the command lane.
func laneActions() []string {
	var out []string
	for _, x := range control.Actions() {
		if x.OfLane() {
			out = append(out, string(x))
		}
	}
	return out
}

func (a *app) steerLane(ctx context.Context, l laneCall) error {
	if !slices.Contains(laneActions(), string(l.Action)) {
		return usage(fmt.Errorf("lane %s %s: what can be asked is %s; to stop the whole run: kernsweep stop", live.Safe(l.Lane), live.Safe(string(l.Action)), strings.Join(laneActions(), ", ")))
	}
	if err := l.Check(); err != nil {
		return usage(err)
	}
	run, err := a.steerableRun(l)
	if err != nil {
		return err
	}
	said, err := control.Ask(ctx, run, l.Request)
	var refused *control.RefusedError
	switch {
	case errors.As(err, &refused):
		return usage(errors.New(live.Safe(err.Error())))
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return &statusError{exitInfra, errors.New(live.Safe(err.Error()))}
	}
	if a.json {
		return a.printJSON(struct {
			Run    string         `json:"run"`
			Lane   string         `json:"lane"`
			Action control.Action `json:"action"`
			Said   string         `json:"said"`
		}{run.Name(), l.Lane, l.Action, said})
	}
	fmt.Fprintln(a.out, live.Safe(said))
	return nil
}

// steerableRun is the run that is meant: the one that is named, else the one that is
// being executed and has the lane.
func (a *app) steerableRun(l laneCall) (*results.Run, error) {
	if l.run != "" {
		run, err := a.findRun(l.run)
		if err != nil {
			return nil, err
		}
		if names := lanesOf(run); len(names) > 0 && !slices.Contains(names, l.Lane) {
			return nil, usage(fmt.Errorf("run %s has no lane %q: it has %s", paste.Word(run.Name()), l.Lane, strings.Join(names, ", ")))
		}
		return run, nil
	}
	all := a.executed()
	if len(all) == 0 {
		return nil, &statusError{exitInfra, fmt.Errorf("no run in %s is being executed: there is nothing to steer", a.runs)}
	}
	var have []*results.Run
	var names, lanes []string
	for _, r := range all {
		names = append(names, r.Name())
		lanes = append(lanes, lanesOf(r)...)
		if slices.Contains(lanesOf(r), l.Lane) {
			have = append(have, r)
		}
	}
	switch len(have) {
	case 0:
		return nil, usage(fmt.Errorf("%s has no lane %q: there are %s", strings.Join(names, ", "), l.Lane, strings.Join(lanes, ", ")))
	case 1:
		return have[0], nil
	}
	return nil, usage(fmt.Errorf("%d runs with a lane %s are being executed; name one with --run: %s", len(have), l.Lane, strings.Join(names, ", ")))
}

// executed are the runs that a process is at work on, the newest first.
func (a *app) executed() []*results.Run {
	names, err := results.List(a.runs)
	if err != nil {
		return nil
	}
	var out []*results.Run
	for _, n := range slices.Backward(names) {
		run, err := results.Find(a.runs, n)
		if err != nil {
			continue
		}
		if _, held := run.HeldBy(); held {
			out = append(out, run)
		}
	}
	return out
}

// laneWords completes the lanes of the runs that go on.
func (a *app) laneWords() []string {
	var out []string
	for _, r := range a.executed() {
		for _, n := range lanesOf(r) {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}
