package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/sshconn"
)

// powerTime bounds a power cycle by hand: others may be at the same strip, and a
// target may take its time to fall silent.
const powerTime = 4 * time.Minute

func (a *app) powerCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "power TARGET on|off|cycle",
		Short:   "Switch a target's power by hand",
		Example: "  kernsweep power wl500gpv2 cycle",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			lab, t, err := a.pick(args[0])
			if err != nil {
				return err
			}
			if !slices.Contains([]string{"on", "off", "cycle"}, args[1]) {
				return usage(fmt.Errorf("power %s: write on, off or cycle", args[1]))
			}
			if t.Power == nil || targets.TraitsOf(t.Boot).Local {
				return usage(fmt.Errorf("%s: target %s has no power driver of its own", t.Pos, t.Name))
			}
			release, err := a.claimTargets(c.Context(), lab, t.Name)
			if err != nil {
				return err
			}
			defer release()
			return a.power(c.Context(), t, args[1])
		},
	}
}

// power switches by hand as a run does: nobody else talks to the strip
// meanwhile, and off is confirmed by the target falling silent.
func (a *app) power(ctx context.Context, t *config.Target, what string) error {
	ctx, cancel := context.WithTimeout(ctx, powerTime)
	defer cancel()
	m := t.Target
	m.Dial = sshconn.New(a.logger()).Dial
	m.Power = orchestrator.NewSupply(a.claims, &m, func(s string) { fmt.Fprintf(a.err, "%s: %s\n", t.Name, live.Safe(s)) })
	var err error
	if what == "cycle" {
		err = targets.PowerCycle(ctx, &m)
	} else {
		err = m.Power.Set(ctx, what == "on")
	}
	if err != nil {
		return &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
	}
	return nil
}
