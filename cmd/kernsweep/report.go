package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/report"
)

func (a *app) reportCmd() *cobra.Command {
	var o report.Options
	var out string
	var schema bool
	c := &cobra.Command{
		Use:   "report RUN",
		Short: "Print what was measured and what follows from it, kernel beside kernel",
		Long: "Print what was measured and what follows from it, kernel beside kernel: the verdicts first, then why numbers may not be\n" +
			"believed, then the figures. RUN is a name, a unique beginning of one, a path, or \"latest\". Exit status: 0 when the run\n" +
			"could be read, whatever it says.\n\n" +
			"Formats: text and md; verdicts (the answer alone); html (one file); csv (every value), comparisons and samples (vmstat)\n" +
			"for a spreadsheet or R; json (kernsweep report --schema describes it); bench for benchstat -col kernel; junit for CI.",
		Example: "  kernsweep report latest\n  kernsweep report latest --format html -o night.html\n  kernsweep report latest --format csv -o night.csv\n" +
			"  kernsweep report latest --format bench -o night.bench && benchstat -col kernel night.bench",
		Args: func(c *cobra.Command, args []string) error {
			if schema {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if schema {
				return a.printSchema(out)
			}
			debug.SetGCPercent(30) // a run of 100,000 trials fits into 300 MB, for a few tenths of a second
			run, err := a.findRun(args[0])
			if err != nil {
				return err
			}
			o.Kernsweep = a.calledFor(run)
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
	f.BoolVar(&o.Secondary, "secondary", false, "also print the comparisons of metrics that no verdict is about")
	f.BoolVar(&schema, "schema", false, "print the JSON Schema of --format json, and nothing else")
	f.StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	return c
}

// printSchema writes the schema of the JSON report.
func (a *app) printSchema(file string) error {
	if file == "" || file == "-" {
		_, err := a.out.Write(report.Schema())
		return err
	}
	return writeFileFrom(file, func(w io.Writer) error {
		_, err := w.Write(report.Schema())
		return err
	})
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
	if o.Kernsweep == "" {
		o.Kernsweep = a.kernsweep()
	}
	return o
}
