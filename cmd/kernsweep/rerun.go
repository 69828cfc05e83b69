package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

func (a *app) rerunCmd() *cobra.Command {
	var only plan.Filter
	var failed bool
	c := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Add attempts to a finished run, and refresh its report",
		Long: `Add attempts to a finished run, and refresh its report. RUN is a name, a unique
beginning of one, a path, or "latest". Earlier attempts are kept; the newest valid one counts.`,
		Example: "  kernsweep rerun latest --failed\n  kernsweep rerun latest --target wl500gpv2",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			lab, err := a.load()
			if err != nil {
				return err
			}
			p, err := a.selectRerun(lab, run, only, failed)
			if err != nil {
				return err
			}
			if err := a.notReady(lab, p); err != nil {
				return err
			}
			release, err := a.claim(lab, p)
			if err != nil {
				return err
			}
			defer release()
			a.warnDifferences(lab, run)
			return a.execute(c.Context(), lab, p, run, beginning{why: "rerun"})
		},
	}
	filterFlags(c, &only)
	c.Flags().BoolVar(&failed, "failed", false, "only what did not end ok, or never ran")
	return c
}

func (a *app) findRun(name string) (*results.Run, error) {
	run, err := results.Find(a.runs, name)
	if err != nil {
		return nil, usage(err)
	}
	return run, nil
}

// selectRerun is the part of the run's own plan that is to be executed again.
func (a *app) selectRerun(lab *config.Lab, run *results.Run, f plan.Filter, failed bool) (*plan.Plan, error) {
	var whole plan.Plan
	if _, err := run.ReadPlan(&whole); err != nil {
		return nil, usage(err)
	}
	state, err := run.State()
	if err != nil {
		return nil, err
	}
	var want func(results.Slot) bool
	if failed {
		want = func(s results.Slot) bool {
			t := state.Model.Slot(s)
			return t == nil || t.Outcome() != results.OK && t.Outcome() != results.NotApplicable
		}
	}
	p, err := whole.Select(lab, f, want)
	if err != nil {
		return nil, usage(err)
	}
	if len(p.Lanes) == 0 {
		if failed {
			return nil, &statusError{0, fmt.Errorf("nothing to do: in %s everything selected ended ok", run.Name())}
		}
		return nil, usage(fmt.Errorf("nothing of %s is selected", run.Name()))
	}
	return p, nil
}

// warnDifferences names what changed since the run began: the configuration, an
// image, kernsweep itself.
func (a *app) warnDifferences(lab *config.Lab, run *results.Run) {
	warn := func(format string, v ...any) { fmt.Fprintf(a.err, "warning: "+format+"\n", v...) }
	if v := version(); v != run.Meta.Version {
		warn("the run began with kernsweep %s, this is %s", run.Meta.Version, v)
	}
	old, err := os.ReadFile(filepath.Join(run.Dir(), "testbeds.hcl"))
	if err == nil && !bytes.Equal(old, sourceCopy(lab)) {
		warn("the configuration is not the one the run began with (kept as %s)", filepath.Join(run.Dir(), "testbeds.hcl"))
	}
	for path, was := range run.Meta.Images {
		switch now, err := hashFile(path); {
		case err != nil:
			warn("image %s: %v", path, err)
		case now != was:
			warn("image %s has changed since the run began: old and new attempts are of different kernels", path)
		}
	}
}
