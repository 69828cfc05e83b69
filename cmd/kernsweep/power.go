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

// powerWords are what can be done to a target's power.
func powerWords() []string { return []string{"on", "off", "cycle"} }

func (a *app) powerCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "power TARGET… on|off|cycle",
		Short: "Switch the power of one target or many by hand",
		Long: `Switch the power of one target or many by hand. ` + choosing + `

All of them are claimed together, so that no run is on one; with --wait this waits
for those that others use. Outlets of one strip are switched one after the other,
others at once. Off is confirmed by the target falling silent.

Exit status: 0 done; 2 usage or configuration; 3 an outlet or its target did not do it, or
the target is in use; 130 interrupted.`,
		Example:           "  kernsweep power wl500gpv2 cycle\n  kernsweep power label:rack2 off",
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: a.completeHands(false, powerWords),
		RunE: func(c *cobra.Command, args []string) error {
			what := args[len(args)-1]
			if !slices.Contains(powerWords(), what) {
				return usage(fmt.Errorf("power %s: write on, off or cycle", what))
			}
			on, err := a.choose(args[:len(args)-1])
			if err != nil {
				return err
			}
			for _, t := range on.list {
				if t.Power == nil || targets.TraitsOf(t.Boot).Local {
					return usage(fmt.Errorf("%s: target %s has no power driver of its own%s; give it one, power \"tasmota\" { address = \"PLUG\" } or another of kernsweep help testbeds", t.Pos, t.Name, on.without(t)))
				}
			}
			release, err := a.claimTargets(c.Context(), on.lab, on.names()...)
			if err != nil {
				return err
			}
			defer release()
			if on.one && !a.json {
				return a.power(c.Context(), on.list[0], what)
			}
			return a.many(c.Context(), on, limits{}, &oneWriter{w: a.err}, func(ctx context.Context, h hand) deed {
				h.begins()
				if err := h.power(ctx, h.t, what); err != nil {
					return deed{err: err}
				}
				return deed{line: "power " + what + ": done", result: what}
			})
		},
	}
}

// without is how several targets are chosen but for one.
func (c choice) without(t *config.Target) string {
	if c.one || len(c.list) < 2 {
		return ""
	}
	return fmt.Sprintf(": leave it out with '!%s'", t.Name)
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
