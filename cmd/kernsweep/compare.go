package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/store"
	"kernsweep/orchestrator/validity"
)

// comparing is one command line of compare.
type comparing struct {
	plan.Filter
	common    bool
	secondary bool
	history   int
}

// compared is what compare --json prints.
type compared struct {
	*compare.RunsJudgement
	History []compare.HistoryRow `json:"history,omitempty"`
}

func (a *app) compareCmd() *cobra.Command {
	var o comparing
	c := &cobra.Command{
		Use:   "compare [RUN_A] RUN_B",
		Short: "Compare a run with an earlier one, cell by cell, and show trends over many",
		Long: `Compare run B with run A: each cell with the same cell, the same kernel with itself. RUN is a name, a
unique beginning of one, a path, or "latest". Two kernels of one sweep are compared by report.

Runs of unequal cells are refused: other targets, kernels, workloads or scenarios, other metrics, or other
parameters of a workload. --common compares what both share and names the rest.

--history N shows the medians of the last N runs of RUN_B's sweep, RUN_B the last of them, and whether they go
anywhere. With it RUN_A may be left out.

The exit status is 1 when a primary comparison is slower, or a kernel does not boot any more; 4 when none is, but
some are inconclusive; 0 when every one has its answer; 2 when the runs are refused.`,
		Example: "  kernsweep compare 20261129 latest\n  kernsweep compare 20261129 latest --common --kernel bfs\n  kernsweep compare latest --history 10",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case c.Flags().Changed("history") && o.history < 2:
				return usage(fmt.Errorf("--history %d: a trend takes at least 2 runs", o.history))
			case len(args) < 2 && o.history == 0:
				return usage(fmt.Errorf("compare %s with which run? kernsweep compare RUN_A %s, or kernsweep compare %s --history 10", args[0], args[0], args[0]))
			case len(args) < 2 && o.common:
				return usage(errors.New("--common is about two runs: name both"))
			}
			return a.compare(args, &o)
		},
	}
	filterFlags(c, &o.Filter)
	c.Flags().BoolVar(&o.common, "common", false, "compare only what both runs share, and name what is left out")
	c.Flags().BoolVar(&o.secondary, "secondary", false, "also show the metrics that no verdict is about")
	c.Flags().IntVar(&o.history, "history", 0, "show the medians of the last so many runs of the same sweep, and their trend")
	return c
}

func (a *app) compare(args []string, o *comparing) error {
	b, err := a.runSide(args[len(args)-1])
	if err != nil {
		return err
	}
	sel := compare.Selection{Targets: o.Targets, Kernels: o.Kernels, Workloads: o.Workloads}
	var out compared
	if len(args) == 2 {
		before, err := a.runSide(args[0])
		if err != nil {
			return err
		}
		floors, err := compare.ReadFloors(filepath.Dir(b.dir))
		if err != nil {
			fmt.Fprintln(a.err, "warning: "+live.Safe(err.Error()))
		}
		out.RunsJudgement, err = compare.CompareRuns(before.RunSide, b.RunSide, compare.RunsOptions{Selection: sel, Common: o.common, Floors: floors})
		if err != nil {
			return usage(err)
		}
		for i := range out.RunsJudgement.Comparisons {
			c := &out.RunsJudgement.Comparisons[i]
			c.MoreCommand = strings.ReplaceAll(c.MoreCommand, "kernsweep rerun ", a.kernsweep()+" rerun ")
		}
	}
	if o.history > 0 {
		runs, err := a.runsUpTo(b, o.history)
		if err != nil {
			return err
		}
		if out.History = compare.History(runs, sel); len(out.History) == 0 {
			return usage(fmt.Errorf("nothing of %s is selected: it has no cell of that name", b.Meta.Name))
		}
	}
	if err := a.printCompared(&out, o.secondary); err != nil {
		return err
	}
	if out.RunsJudgement != nil {
		if status := out.ExitStatus(); status != 0 {
			return &statusError{status: status}
		}
	}
	return nil
}

func (a *app) printCompared(out *compared, secondary bool) error {
	if a.json {
		return a.printJSON(out)
	}
	if out.RunsJudgement != nil {
		if err := printRuns(a.out, out.RunsJudgement, secondary); err != nil {
			return err
		}
	}
	if len(out.History) == 0 {
		return nil
	}
	if out.RunsJudgement != nil {
		fmt.Fprintln(a.out)
	}
	return printHistory(a.out, out.History)
}

// oneSide is a run and what its folder knows of it.
type oneSide struct {
	compare.RunSide
	dir string
}

func (a *app) runSide(name string) (*oneSide, error) {
	run, err := a.findRun(name)
	if err != nil {
		return nil, err
	}
	return openSide(run)
}

func openSide(run *results.Run) (*oneSide, error) {
	s, err := run.State()
	if err != nil {
		return nil, err
	}
	side := &oneSide{compare.RunSide{Meta: run.Meta, State: s, Findings: validity.Run(run, s)}, run.Dir()}
	kept, err := store.ReadKept(run.Dir())
	if errors.Is(err, fs.ErrNotExist) {
		return side, nil // of an import, or of an early version
	}
	if err != nil {
		return nil, err
	}
	side.Settings, side.Images = kept.Settings, map[string]string{}
	for _, i := range kept.Images {
		side.Images[fmt.Sprintf("%s on %s: %s %s", i.Kernel, i.Target, i.Part, i.Path)] = i.Hash
	}
	return side, nil
}

// runsUpTo are the last n runs of b's sweep, b the last of them. Runs that cannot
// be read are left out, with a warning.
func (a *app) runsUpTo(b *oneSide, n int) ([]compare.RunSide, error) {
	dir := filepath.Dir(b.dir)
	names, err := results.List(dir)
	if err != nil {
		return nil, err
	}
	var earlier []*results.Run
	for _, name := range names {
		run, err := results.Open(filepath.Join(dir, name))
		switch {
		case err != nil:
			fmt.Fprintf(a.err, "warning: left out of the history: %s\n", live.Safe(err.Error()))
		case run.Meta.Sweep == b.Meta.Sweep && run.Meta.ID != b.Meta.ID && !run.Meta.Created.After(b.Meta.Created):
			earlier = append(earlier, run)
		}
	}
	// Names tell seconds only.
	slices.SortStableFunc(earlier, func(a, b *results.Run) int { return a.Meta.Created.Compare(b.Meta.Created) })
	var out []compare.RunSide
	for _, run := range earlier[max(0, len(earlier)-(n-1)):] {
		s, err := openSide(run)
		if err != nil {
			fmt.Fprintf(a.err, "warning: left out of the history: %s\n", live.Safe(err.Error()))
			continue
		}
		out = append(out, s.RunSide)
	}
	return append(out, b.RunSide), nil
}
