package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/tftp"
)

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
