package power

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kernsweep/targets"
)

// Command switches the supply with two programs of the lab.
type Command struct {
	On       []string      `hcl:"on" doc:"program and arguments that switch the target on, run on the controller"`
	Off      []string      `hcl:"off" doc:"program and arguments that switch it off"`
	Deadline time.Duration `hcl:"deadline,optional" doc:"each must end within this (default 30s)"`
}

// Check refuses a block that lacks a program.
func (c *Command) Check() error {
	for name, argv := range map[string][]string{"on": c.On, "off": c.Off} {
		if len(argv) == 0 || argv[0] == "" {
			return errors.New(name + " names no program")
		}
	}
	return notNegative(c.Deadline)
}

// Programs are those that the block names.
func (c *Command) Programs(*targets.Target) []string { return []string{c.On[0], c.Off[0]} }

// Set runs the program and waits for its end.
func (c *Command) Set(ctx context.Context, on bool) error {
	ctx, stop := limit(ctx, c.Deadline)
	defer stop()
	argv := c.Off
	if on {
		argv = c.On
	}
	if err := targets.RunProgram(ctx, argv, nil); err != nil {
		return fmt.Errorf("power %s: %w", word(on), err)
	}
	return nil
}
