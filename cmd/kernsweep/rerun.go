package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
)

// rerun is one command line of rerun.
type rerun struct {
	plan.Filter
	later
	failed, alone bool
	more          int // blocks to add; 0: none

	run   *results.Run
	state *results.State
	whole *plan.Plan
}

func (a *app) rerunCmd() *cobra.Command {
	var r rerun
	c := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Measure part of a run again, or more of it, as a later session of the same run, and refresh its report",
		Long: `Measure part of a run again, or more of it, as a later session of the same run, and refresh its report. RUN
is a name, a unique beginning of one, a path, or "latest". Earlier attempts are kept; the newest valid one counts.

--more N adds N blocks to what --target, --workload and --kernel leave (all of it without them), each with all
kernels, or with those named and their baseline. Blocks of another day are compared among themselves, since that day
may be a slower one for every kernel; so one block more shows little, and two to four are a better number.

Whole blocks are repeated: every block of a target that holds something selected, with all its kernels, in the
plan's order. One kernel alone, measured on another day, would be compared across days. --workload narrows the
blocks to these workloads. --only-failed-cells repeats no more than what failed, and says what that costs.

The images and agents are the run's own, from the store beside the run directories, whatever became of the
files since. Everything else, such as addresses and secrets, is as -f says today; each difference from the run's
beginning is a warning, and with --strict all of them together are a refusal. A new image wants a new run. The
configuration of then is kept as testbeds.hcl in the run directory, with relative paths from where it was.

What --until left out is no failure: resume measures it. resume also goes on with a run that was cut off,
without repeating what it measured.`,
		Example: "  kernsweep rerun latest --failed\n  kernsweep rerun latest --target wl500gpv2 --workload iperf\n  kernsweep rerun latest --only-failed-cells --strict\n  kernsweep rerun latest --more 3 --target ar2317",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			if r.run = run; !r.selects() {
				return usage(fmt.Errorf("say what of %s is to be repeated: --failed, or --target, --kernel and --workload; --more N adds blocks (kernsweep rerun --help)", paste.Word(run.Name())))
			}
			if c.Flags().Changed("more") {
				if err := r.checkMore(); err != nil || r.more == 0 {
					return usage(cmp.Or(err, errors.New("--more 0 adds nothing")))
				}
			}
			return a.rerun(c.Context(), &r)
		},
	}
	filterFlags(c, &r.Filter)
	f := c.Flags()
	f.BoolVar(&r.failed, "failed", false, "what did not end ok, or never ran")
	f.IntVar(&r.more, "more", 0, "add so many blocks")
	f.BoolVar(&r.alone, "only-failed-cells", false, "as --failed, but without the rest of the blocks")
	r.flags(c)
	return c
}

// selects says whether the command line names a part of the run: without one a
// slip would supersede a whole night.
func (r *rerun) selects() bool {
	return r.failed || r.alone || r.more != 0 || len(r.Targets)+len(r.Kernels)+len(r.Workloads) > 0
}

// runsNow is what to do about a run that another process is at work on.
func (a *app) runsNow(run *results.Run) string {
	return fmt.Sprintf("%s shows how it stands, %s ends it", a.command("status", run), a.command("stop", run))
}

func (a *app) findRun(name string) (*results.Run, error) {
	run, err := results.Find(a.runs, name)
	if err != nil {
		return nil, usage(err)
	}
	return run, nil
}

func (a *app) rerun(ctx context.Context, r *rerun) error {
	if err := notImported(r.run); err != nil {
		return err
	}
	if h, ok := r.run.HeldBy(); ok {
		return &statusError{exitInfra, &results.LockedError{Dir: r.run.Dir(), Holder: h, Hint: a.runsNow(r.run)}}
	}
	lab, err := a.load()
	if err != nil {
		return err
	}
	p, err := a.selectRerun(lab, r)
	if err != nil {
		return err
	}
	return a.later(ctx, lab, p, r.run, r.later, beginning{why: r.why(), seen: len(r.state.Journal.Records)})
}

// why is what the journal says of the session.
func (r *rerun) why() string {
	switch {
	case r.more > 0:
		return "rerun that adds " + plural.Of(r.more, "block")
	case r.alone:
		return "rerun of failed cells alone"
	case r.failed:
		return "rerun of blocks with failures"
	}
	return "rerun of whole blocks"
}

// selectRerun is the part of the run's own plan that is to be executed again.
func (a *app) selectRerun(lab *config.Lab, r *rerun) (*plan.Plan, error) {
	var err error
	if r.state, err = r.run.State(); err != nil {
		return nil, err
	}
	if r.whole, err = orchestrator.Planned(r.run, r.state.Model); err != nil {
		return nil, usage(err)
	}
	if err := r.choose(lab); err != nil {
		return nil, err
	}
	if r.more > 0 {
		return a.addBlocks(lab, r)
	}
	s := plan.Selection{Filter: r.Filter, Alone: r.alone}
	left := map[results.SlotKey]bool{} // by --until
	if r.failed || r.alone {
		cut := cuts(r.state.Journal.Records)
		s.Want = func(slot results.Slot) bool {
			t := r.state.Model.Slot(slot)
			if t == nil && cut[slot.Target] > 0 && (slot.Block >= cut[slot.Target] || r.whole.Design.Order == config.Blocked) {
				left[slot.Key()] = true
				return false
			}
			return t == nil || t.Outcome() != results.OK && t.Outcome() != results.NotApplicable
		}
	}
	p, err := r.whole.Repeated(lab, s)
	if err != nil {
		return nil, usage(err)
	}
	if n := len(left); n > 0 {
		fmt.Fprintf(a.err, "left out for --until, and measured by kernsweep resume %[2]s: %[1]s\n", plural.Of(n, "trial"), paste.Word(r.run.Name()))
	}
	if len(p.Lanes) == 0 {
		if s.Want != nil {
			return nil, &statusError{0, fmt.Errorf("nothing to do: in %s everything selected ended ok", paste.Word(r.run.Name()))}
		}
		return nil, usage(fmt.Errorf("nothing of %s is selected: no target has all of that", paste.Word(r.run.Name())))
	}
	a.sayCost(lab, r, p, s)
	return p, nil
}

// cuts are the first blocks that --until left out, by lane.
func cuts(records []results.Record) map[string]int {
	first := map[string]int{}
	for _, rec := range records {
		if rec.Kind == results.KindCut && rec.Cut != nil && (first[rec.Lane] == 0 || rec.Cut.Block < first[rec.Lane]) {
			first[rec.Lane] = rec.Cut.Block
		}
	}
	return first
}

// sayCost says what is repeated, and what the other way would repeat.
func (a *app) sayCost(lab *config.Lab, r *rerun, p *plan.Plan, s plan.Selection) {
	sessions := r.state.Model.Sessions
	if n := len(sessions); n > 0 && (sessions[n-1].Ended.IsZero() || sessions[n-1].Interrupted) {
		fmt.Fprintf(a.err, "%s did not come to its end: kernsweep resume %s goes on with it, without repeating what it measured\n", paste.Word(r.run.Name()), paste.Word(r.run.Name()))
	}
	s.Alone = !s.Alone
	other, err := r.whole.Repeated(lab, s)
	if err != nil {
		other = &plan.Plan{} // of what is not done nothing needs saying
	}
	for _, l := range p.Lanes {
		var o plan.Lane
		for _, x := range other.Lanes {
			if x.Target == l.Target {
				o = x
			}
		}
		differ := o.Measured() > 0 && o.Measured() != l.Measured()
		text := fmt.Sprintf("repeats %s of %s (%s, about %s) as session %d", plural.Of(l.Rounds(), "whole block"), l.Target,
			plural.Of(l.Measured(), "trial"), plan.Round(l.Estimate), len(sessions)+1)
		switch {
		case r.alone:
			text = fmt.Sprintf("repeats %s of %s (about %s) as session %d", plural.Of(l.Measured(), "trial"), l.Target, plan.Round(l.Estimate), len(sessions)+1)
			if differ {
				text += fmt.Sprintf(", and compares kernels of different days; without --only-failed-cells it is %s (%s, about %s)",
					plural.Of(o.Rounds(), "whole block"), plural.Of(o.Measured(), "trial"), plan.Round(o.Estimate))
			}
		case differ && r.failed:
			text += fmt.Sprintf("; --only-failed-cells repeats %s, but compares kernels of different days", plural.Of(o.Measured(), "trial"))
		}
		fmt.Fprintln(a.err, text)
	}
}
