package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/plural"
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
				return a.printJSON(map[string]int{"targets": len(lab.Targets), "kernels": len(lab.Kernels),
					"workloads": len(lab.Workloads), "sweeps": len(lab.Sweeps)})
			}
			fmt.Fprintf(a.out, "%s is valid: %s, %s, %s, %s\n", a.file, plural.Of(len(lab.Targets), "target"),
				plural.Of(len(lab.Kernels), "kernel"), plural.Of(len(lab.Workloads), "workload"), plural.Of(len(lab.Sweeps), "sweep"))
			return nil
		},
	}
}
