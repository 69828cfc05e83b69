package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
	"kernsweep/targets"
)

func (a *app) targetProbeCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "probe TARGET",
		Short:   "Look at what runs on a target: kernel, scheduler and the evidence for it, CPU, tools",
		Example: "  kernsweep target probe ar2317",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			_, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), handTime)
			defer cancel()
			conn, err := a.dial(ctx, t)
			if err != nil {
				return err
			}
			defer conn.Close()
			ev, err := targets.Probe(ctx, conn)
			if err != nil {
				return &statusError{exitInfra, fmt.Errorf("target %s: probe: %w", t.Name, err)}
			}
			var rec targets.BootRecord
			ev.Fill(&rec)
			return a.printProbe(t, rec)
		},
	}
}

func (a *app) printProbe(t *config.Target, r targets.BootRecord) error {
	if a.json {
		e := json.NewEncoder(report.Inert(a.out))
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, live.Safe(value)) }
	line("target", t.Name)
	line("kernel", r.Release+" "+r.Version)
	line("machine", fmt.Sprintf("%s, GOARCH %s, %d CPUs, %d MB", r.Machine, dash(r.Arch), r.CPUs, r.MemoryKB/1024))
	line("scheduler", strings.TrimSpace(dash(r.Scheduler.Name)+" "+r.Scheduler.Detail))
	for _, e := range r.Scheduler.Evidence {
		line("", e)
	}
	for _, e := range r.Scheduler.Conflicts {
		line("conflict", e)
	}
	line("boot_id", r.BootID)
	line("command line", r.Cmdline)
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		line("has "+name, r.Tools[name])
	}
	for _, n := range r.Notes {
		line("note", n)
	}
	if t.Arch != "" && r.Arch != "" && t.Arch != r.Arch {
		line("WRONG", fmt.Sprintf("%s says arch = %q, an executable on the target says %q", t.Pos, t.Arch, r.Arch))
	}
	return w.Flush()
}
