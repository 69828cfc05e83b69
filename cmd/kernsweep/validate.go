package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
)

func (a *app) validateCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "validate",
		Short:   "Check the whole configuration; nothing is contacted",
		Example: "  kernsweep validate\n  kernsweep -f lab/ validate --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			lab, warnings, err := a.loadAll()
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintln(a.err, w)
			}
			if a.json {
				return json.NewEncoder(a.out).Encode(map[string]int{"targets": len(lab.Targets), "kernels": len(lab.Kernels),
					"workloads": len(lab.Workloads), "sweeps": len(lab.Sweeps)})
			}
			fmt.Fprintf(a.out, "%s is valid: %d targets, %d kernels, %d workloads, %d sweeps\n",
				a.file, len(lab.Targets), len(lab.Kernels), len(lab.Workloads), len(lab.Sweeps))
			return nil
		},
	}
}

func (a *app) fmtCmd() *cobra.Command {
	var check bool
	c := &cobra.Command{
		Use:     "fmt [FILE…]",
		Short:   "Rewrite configuration files in the canonical layout",
		Example: "  kernsweep fmt\n  kernsweep fmt --check testbeds.hcl",
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				files = []string{a.file}
			}
			changed := false
			for _, f := range files {
				c, err := a.format(f, check)
				if err != nil {
					return usage(err)
				}
				changed = changed || c
			}
			if check && changed {
				return &statusError{status: exitFailed}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&check, "check", false, "change nothing, name the files that would change and exit with 1")
	return c
}

// format rewrites one file, or every *.hcl of a folder, and names what changed.
func (a *app) format(path string, check bool) (changed bool, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	files := []string{path}
	if st.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.hcl")); err != nil {
			return false, err
		}
	}
	for _, f := range files {
		old, err := os.ReadFile(f)
		if err != nil {
			return changed, err
		}
		if diags := config.Syntax(f); diags.HasErrors() {
			for _, d := range diags {
				fmt.Fprintln(a.err, d)
			}
			return changed, fmt.Errorf("%s is left as it is: it cannot be parsed", f)
		}
		now := config.Format(old)
		if bytes.Equal(old, now) {
			continue
		}
		changed = true
		fmt.Fprintln(a.out, f)
		if check {
			continue
		}
		if err := replaceFile(f, now); err != nil {
			return changed, err
		}
	}
	return changed, nil
}
