package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/importer"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// importing is one command line of import.
type importing struct {
	importer.Options
	better, dead []string
	run          string
	dryRun       bool
}

func (a *app) importCmd() *cobra.Command {
	var im importing
	c := &cobra.Command{
		Use:   "import FORMAT [KERNEL=]FILE…",
		Short: "Make a run of other people's logs, for report and compare",
		Long: `Make a run of other people's logs, for report and compare to read like any other. FORMAT is

  iperf      text, CSV or JSON of iperf2 and iperf3; each run of iperf is a trial
  kernbench  kernbench.log; each load level of each kernel is a trial. Figures that the script pooled over
             levels are taken apart, and the printed ones kept beside them
  time       output of time: bash, busybox, POSIX, GNU
  vmstat     text of vmstat: what a machine did; with --run and --workload the activity of the trials of that
             workload which have none, a file for each
  table      rows under a line of names, with tabs, commas, semicolons or blanks between. Columns kernel (or
             scheduler, variant), target, workload, scenario, task, repeat, boot and order say what a row is of;
             every other column of numbers is a metric, its unit at the end of its name: user_s, max_lat_ms.
             Or, with columns metric and value (and unit, better), a row is one value. na, - and nothing are
             missing values

FILE may be "-" for standard input. KERNEL= names the kernel of a file that does not say it.

Nothing of such a run is proven, and no boot is known unless the files tell: without --boots all trials of a
kernel count as one boot, which proves nothing about kernels. All files are read before anything is written, and
kept byte for byte in the run directory.`,
		Example: `  kernsweep import iperf --target wl500gpv2 CFS=cfs.txt BFS=bfs.txt
  kernsweep import kernbench kernbench.log --dry-run
  kernsweep import table results.csv --boots each-row --better score=higher
  kernsweep import vmstat --run latest --target wl500gpv2 --kernel BFS vmstat.txt`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			im.Format = args[0]
			return a.importLogs(c.Context(), &im, args[1:])
		},
	}
	im.flags(c)
	return c
}

func (im *importing) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&im.Name, "name", "", "name of the sweep (default imported-FORMAT)")
	f.StringVar(&im.Target, "target", "", "target that the files are of, where they do not say (default \"imported\")")
	f.StringVar(&im.Kernel, "kernel", "", "kernel that the files are of, where neither they nor KERNEL= say")
	f.StringVar(&im.Baseline, "baseline", "", "kernel that the others are compared with (default: the first)")
	f.StringVar(&im.Workload, "workload", "", "KIND.NAME of the workload, where the files do not say (default FORMAT.imported)")
	f.StringVar(&im.Scenario, "scenario", "", "scenario, where the files do not say (default \"default\")")
	f.StringVar(&im.Boots, "boots", "", "what is a boot: unknown (all trials of a kernel count as one), each-file, each-row, column (default: the table's column boot, else unknown)")
	f.StringArrayVar(&im.better, "better", nil, "METRIC=lower, higher or info: direction of a metric")
	f.StringVar(&im.Primary, "primary", "", "metric that verdicts are about")
	f.StringArrayVar(&im.dead, "did-not-boot", nil, "KERNEL=REASON: a kernel without figures, because it did not boot")
	f.StringVar(&im.Note, "note", "", "where the files are from, for those who read the report")
	f.StringVar(&im.run, "run", "", "add to this imported run, as a later session")
	f.IntVar(&im.Runs, "runs-per-average", 0, "kernbench: runs behind each average (default 5)")
	f.StringVar(&im.FirstRow, "first-row", "", "vmstat: drop (default) the first row as the average since boot, or keep it as a sample")
	f.BoolVar(&im.dryRun, "dry-run", false, "only print what was understood")
}

// pairs reads the flags of the form NAME=VALUE.
func (im *importing) pairs() error {
	im.Better = map[string]workloads.Direction{}
	for _, s := range im.better {
		name, word, ok := strings.Cut(s, "=")
		d, err := importer.Direction(word)
		if !ok || name == "" || err != nil {
			return fmt.Errorf("--better %s: write METRIC=lower, METRIC=higher or METRIC=info", s)
		}
		im.Better[name] = d
	}
	for _, s := range im.dead {
		kernel, reason, ok := strings.Cut(s, "=")
		if !ok || kernel == "" || strings.TrimSpace(reason) == "" {
			return fmt.Errorf("--did-not-boot %s: write KERNEL=REASON", s)
		}
		im.DidNotBoot = append(im.DidNotBoot, importer.Dead{Kernel: kernel, Reason: reason})
	}
	return nil
}

func (a *app) importLogs(ctx context.Context, im *importing, args []string) error {
	if err := im.pairs(); err != nil {
		return usage(err)
	}
	if im.run != "" && im.Name != "" {
		return usage(errors.New("--name is for a new run, --run for one that there is: take one away"))
	}
	files, err := a.openLogs(ctx, args)
	if err != nil {
		return err
	}
	var run *results.Run
	if im.run != "" {
		if run, err = a.findRun(im.run); err != nil {
			return err
		}
		im.DefaultsFrom(run)
	}
	m, err := importer.Read(im.Options, files)
	if err == nil && run == nil && m.Attaches() {
		err = errors.New("vmstat with --workload is the activity of trials that are there: name their run with --run")
	}
	if err != nil {
		return usage(err)
	}
	if im.dryRun {
		return a.described(m.Describe(), nil)
	}
	if ctx.Err() != nil {
		return ctx.Err() // reading much takes a while, in which nobody asked
	}
	if run != nil {
		if err := m.Add(ctx, run, who()); err != nil {
			var held *results.LockedError
			var disk *fs.PathError
			if errors.As(err, &held) || errors.As(err, &disk) || ctx.Err() != nil {
				return &statusError{exitInfra, err}
			}
			return usage(err)
		}
		return a.described(m.Describe(), run)
	}
	host, _ := os.Hostname()
	meta := results.RunMeta{Who: who(), Host: host, Version: version(), Command: a.args, Imported: m.Meta()}
	run, err = a.wholeRun(m.Name(), meta, func(run *results.Run) error { return m.Write(ctx, run, who()) })
	if err != nil {
		return err
	}
	return a.described(m.Describe(), run)
}

// openLogs reads the files; an interruption does not wait for standard input.
func (a *app) openLogs(ctx context.Context, args []string) ([]importer.File, error) {
	type opened struct {
		files []importer.File
		err   error
	}
	done := make(chan opened, 1)
	go func() {
		files, err := importer.Open(args, a.in)
		done <- opened{files, err}
	}()
	select {
	case x := <-done:
		if x.err != nil {
			return nil, usage(x.err)
		}
		return x.files, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// described prints what was understood: as data on a dry run, else beside the
// run's name.
func (a *app) described(d importer.Described, run *results.Run) error {
	if a.json {
		return a.printJSON(struct {
			Run string `json:"run,omitempty"`
			importer.Described
		}{dirOf(run), d})
	}
	to := a.out
	if run != nil {
		to = a.err
	}
	for _, l := range d.Text() {
		fmt.Fprintln(to, live.Safe(l))
	}
	if run == nil {
		return nil
	}
	fmt.Fprintf(a.err, "imported; kernsweep report %s prints it\n", paste.Word(run.Name()))
	_, err := fmt.Fprintln(a.out, run.Dir())
	return err
}

// notImported refuses a run that has no target to measure on.
func notImported(run *results.Run) error {
	if run.Meta.Imported == nil {
		return nil
	}
	return usage(fmt.Errorf("%s was imported: it has figures of other people's logs, and no target to measure on; a sweep of your own has (kernsweep run)", paste.Word(run.Name())))
}

func dirOf(run *results.Run) string {
	if run == nil {
		return ""
	}
	return filepath.Clean(run.Dir())
}
