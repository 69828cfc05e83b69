package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/report"
)

func (a *app) reportCmd() *cobra.Command {
	var o report.Options
	var out string
	c := &cobra.Command{
		Use:     "report RUN",
		Short:   "Print what was measured, kernel beside kernel",
		Long:    "Print what was measured, kernel beside kernel. RUN is a name, a unique beginning of one, a path, or \"latest\".",
		Example: "  kernsweep report latest\n  kernsweep report latest --vmstat\n  kernsweep report latest --format csv -o night.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			if a.json {
				if o.Format != "json" && c.Flags().Changed("format") {
					return usage(fmt.Errorf("--json and --format %s contradict each other", o.Format))
				}
				o.Format = "json"
			}
			if !validFormat(o.Format) {
				return usage(fmt.Errorf("--format %q: there are %s", o.Format, strings.Join(report.Formats(), ", ")))
			}
			if out == "" || out == "-" {
				return report.Write(a.out, run, a.reportOptions(o))
			}
			return writeFileFrom(out, func(w io.Writer) error { return report.Write(w, run, o) })
		},
	}
	f := c.Flags()
	f.StringVar(&o.Format, "format", "text", strings.Join(report.Formats(), ", "))
	f.BoolVar(&o.VMStat, "vmstat", false, "also print the vmstat samples of every trial")
	f.StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	return c
}

func validFormat(name string) bool {
	for _, f := range report.Formats() {
		if f == name {
			return true
		}
	}
	return false
}

// reportOptions fits a report to where it is printed.
func (a *app) reportOptions(o report.Options) report.Options {
	if width, ok := a.terminal(); ok && o.Width == 0 {
		o.Width = width()
	}
	return o
}
