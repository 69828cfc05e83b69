package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/report"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
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
	c.AddCommand(a.targetListCmd(), a.targetProbeCmd(), a.leasing(a.targetDoctorCmd()))
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
			var rows []row
			for _, t := range lab.Targets {
				rows = append(rows, row{t.Name, t.Arch, t.BootKind, t.PowerKind, t.ConsoleKind, t.SSH.Host})
			}
			if a.json {
				return json.NewEncoder(report.Inert(a.out)).Encode(rows)
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

// dial reaches a real target by hand.
func (a *app) dial(ctx context.Context, t *config.Target) (targets.Conn, error) {
	if targets.TraitsOf(t.Boot).Local {
		return nil, usage(fmt.Errorf("%s is virtual: it exists only while a run or `kernsweep boot %s KERNEL` runs it", t.Name, t.Name))
	}
	conn, err := sshconn.New(a.logger()).Dial(ctx, t.SSH, targets.DialOptions{Note: func(s string) { fmt.Fprintln(a.err, live.Safe(s)) }})
	if err != nil {
		return nil, &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
	}
	return conn, nil
}

func (a *app) execCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "exec TARGET -- COMMAND…",
		Short:   "Run a command on a target; its exit status becomes ours",
		Example: "  kernsweep exec ar2317 -- cat /proc/loadavg",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			_, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			dialCtx, cancel := context.WithTimeout(c.Context(), handTime)
			conn, err := a.dial(dialCtx, t)
			cancel()
			if err != nil {
				return err
			}
			defer conn.Close()
			exit, err := conn.Run(c.Context(), targets.Cmd{Argv: args[1:], Stdout: a.out, Stderr: a.err})
			switch {
			case err != nil:
				return &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
			case exit.OK():
				return nil
			case exit.Signal == "" && !exit.NoStatus:
				return &statusError{status: exit.Code}
			}
			return &statusError{exitFailed, fmt.Errorf("target %s: the command %s", t.Name, exit)}
		},
	}
}

func (a *app) bootCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "boot TARGET KERNEL",
		Short:   "Boot a kernel by hand, prove it, and show its console; a virtual target then runs until Ctrl-C",
		Example: "  kernsweep boot x86 eevdf_612",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			lab, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			k := lab.Kernel(args[1])
			if k == nil {
				var have []string
				for _, k := range lab.Kernels {
					have = append(have, k.Name)
				}
				return usage(fmt.Errorf("%s has no kernel %q; it has %s", a.file, args[1], strings.Join(have, ", ")))
			}
			release, err := a.claimTargets(c.Context(), lab, t.Name)
			if err != nil {
				return err
			}
			defer release()
			return a.boot(c.Context(), t, k)
		},
	}
}

func (a *app) boot(ctx context.Context, t *config.Target, k *config.Kernel) error {
	resolved, ok := k.For(t)
	tr := targets.TraitsOf(t.Boot)
	if tr.Image && !ok {
		return usage(fmt.Errorf("kernel %s has no image for %s (%s)", k.Name, t.Name, t.Arch))
	}
	m := t.Target
	log := a.logger()
	files := tftp.New(log)
	defer files.Close()
	m.Dial, m.Serve, m.Agent = sshconn.New(log).Dial, files.Serve, orchestrator.AgentBytes
	if m.Power != nil && !tr.Local { // a boot method may have to cycle it
		m.Power = orchestrator.NewSupply(a.claims, &m, func(s string) { fmt.Fprintln(a.err, live.Safe(s)) })
	}
	shared, unshare, err := a.keepConsole(t.Target, "kernsweep boot "+holder(), "")
	if err != nil {
		return &statusError{exitInfra, err}
	}
	defer unshare()
	defer m.StopConsole()
	if c, ok := m.Boot.(targets.Closer); ok {
		defer c.Close()
	}
	conn, rec, err := targets.Boot(ctx, &m, resolved, targets.BootLog{
		Phase:   func(p targets.Phase) { fmt.Fprintf(a.err, "%s: %s\n", t.Name, p) },
		Note:    func(s string) { fmt.Fprintln(a.err, live.Safe(s)) },
		Console: io.MultiWriter(safeWriter{a.err}, shared),
	})
	var crash *targets.BootError
	switch {
	case errors.As(err, &crash):
		return &statusError{exitFailed, fmt.Errorf("target %s: %w", t.Name, err)}
	case err != nil:
		return &statusError{exitInfra, fmt.Errorf("target %s, kernel %s: %w", t.Name, k.Name, err)}
	}
	defer conn.Close()
	if err := a.printProbe(t, rec); err != nil || !tr.Local {
		return err
	}
	fmt.Fprintf(a.err, "running; ssh -p %d %s@%s; Ctrl-C ends it\n", m.SSH.Port, m.SSH.User, m.SSH.Host)
	<-ctx.Done()
	return nil
}
