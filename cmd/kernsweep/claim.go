package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets/sshconn"
)

// claiming is what a command that uses targets holds.
type claiming struct {
	wait   bool
	asked  string               // the command line in short, for the messages that others get
	claims *orchestrator.Claims // nil: nothing is claimed yet
}

// leasing gives a command that claims targets its flag and its name.
func (a *app) leasing(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.wait, "wait", false, "wait for targets that others use, in the order of asking")
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		name := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
		a.asked = strings.Join(append([]string{name}, args...), " ")
		return run(c, args)
	}
	return c
}

// claim makes the plan's targets ours before anything is written.
func (a *app) claim(ctx context.Context, lab *config.Lab, p *plan.Plan) (release func(), err error) {
	c, err := orchestrator.Claim(ctx, a.claimOptions(), lab, p)
	return a.claimed(ctx, c, err)
}

// claimTargets is claim for a command by hand.
func (a *app) claimTargets(ctx context.Context, lab *config.Lab, names ...string) (release func(), err error) {
	c, err := orchestrator.ClaimTargets(ctx, a.claimOptions(), lab, names...)
	if release, err = a.claimed(ctx, c, err); err != nil {
		return nil, err
	}
	if err := c.Notify(ctx, "", who()); err != nil { // the command is no less possible
		fmt.Fprintln(a.err, "kernsweep: a run whose target was taken over could not be told:", err)
	}
	return release, nil
}

func (a *app) claimOptions() orchestrator.ClaimOptions {
	return orchestrator.ClaimOptions{
		Folder:  leases.Find(a.env),
		Holder:  leases.Holder{Owner: who(), Command: a.asked},
		Address: sshconn.New(a.logger()).Address,
		Wait:    a.wait,
		Say:     func(s string) { fmt.Fprintln(a.err, "kernsweep: "+live.Safe(s)) },
	}
}

func (a *app) claimed(ctx context.Context, c *orchestrator.Claims, err error) (release func(), _ error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err // interrupted
	case err != nil:
		return nil, &statusError{exitInfra, err}
	}
	a.claims = c
	return func() {
		if err := c.Release(); err != nil {
			fmt.Fprintln(a.err, "kernsweep: the targets are given back when this process ends:", err)
		}
	}, nil
}

// nameRun puts the run into the leases of its targets, and what was taken over
// for it, or from it, into its journal.
func (a *app) nameRun(ctx context.Context, run *results.Run, w *results.Writer) error {
	if err := a.claims.SetRun(ctx, run); err != nil {
		return &statusError{exitInfra, err}
	}
	err := a.claims.Deliver(ctx, run, who(), func(note string) error {
		_, err := w.Append(ctx, results.Record{Kind: results.KindNote, Note: note})
		return err
	})
	if err != nil {
		return &statusError{exitInfra, err}
	}
	return nil
}

// holder is how others name this process.
func holder() string {
	return fmt.Sprintf("of %s, process %d, since %s", who(), os.Getpid(), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
}

func who() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}
