package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
)

// handTime bounds one command by hand, boots apart.
const handTime = time.Minute

func (a *app) targetCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "target",
		Short: "See, probe and rehearse targets",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.targetListCmd(), a.targetAddCmd(), a.targetProbeCmd(), a.leasing(a.targetDoctorCmd()))
	return c
}

func (a *app) targetListCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "Print the targets of the configuration",
		Example: "  kernsweep target list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			lab, err := a.load()
			if err != nil {
				return err
			}
			type row struct {
				Name    string `json:"name"`
				Arch    string `json:"arch"`
				Boot    string `json:"boot"`
				Power   string `json:"power"`
				Console string `json:"console"`
				Host    string `json:"host"`
			}
			rows := []row{}
			for _, t := range lab.Targets {
				rows = append(rows, row{t.Name, t.Arch, t.BootKind, t.PowerKind, t.ConsoleKind, t.SSH.Host})
			}
			if a.json {
				return a.printJSON(rows)
			}
			w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			fmt.Fprintln(w, "TARGET\tARCH\tBOOT\tPOWER\tCONSOLE\tHOST")
			for _, r := range rows {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, dash(r.Arch), r.Boot, dash(r.Power), dash(r.Console), dash(r.Host))
			}
			return w.Flush()
		},
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// pick loads the configuration and finds a target in it.
func (a *app) pick(name string) (*config.Lab, *config.Target, error) {
	lab, err := a.load()
	if err != nil {
		return nil, nil, err
	}
	if t := lab.Target(name); t != nil {
		return lab, t, nil
	}
	var have []string
	for _, t := range lab.Targets {
		have = append(have, t.Name)
	}
	return nil, nil, usage(fmt.Errorf("%s has no target %q; it has %s", a.file, name, strings.Join(have, ", ")))
}
