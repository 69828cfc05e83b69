package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"kernsweep/targets"
)

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
