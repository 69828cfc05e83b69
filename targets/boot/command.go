package boot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kernsweep/targets"
)

// Command lets a program of the lab start the kernel: a script around a boot
// loader, a power strip, labgrid. It is told what to start by its environment:
// KERNSWEEP_TARGET, _KERNEL, _IMAGE, _INITRD, _DTB, _CMDLINE, _NONCE.
type Command struct {
	Command  []string      `hcl:"command" doc:"program and arguments, run on the controller; status 0 says the start was asked for"`
	Deadline time.Duration `hcl:"deadline,optional" doc:"the program must end within this (default: timeouts.boot)"`
	Cmdline  bool          `hcl:"cmdline,optional" doc:"it hands KERNSWEEP_CMDLINE to the kernel, so the boot's nonce is checked there"`
	Image    bool          `hcl:"image,optional" doc:"it boots KERNSWEEP_IMAGE, so every kernel needs an image for the target"`
}

// Check refuses a block without a program.
func (c *Command) Check() error {
	if len(c.Command) == 0 || c.Command[0] == "" {
		return errors.New("command names no program")
	}
	if c.Deadline < 0 {
		return fmt.Errorf("deadline = %s is negative", c.Deadline)
	}
	return nil
}

// Programs are those that the block names.
func (c *Command) Programs(*targets.Target) []string { return c.Command[:1] }

// Boot runs the program to its end.
func (c *Command) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	d := c.Deadline
	if d <= 0 {
		d = t.Timeout.WithDefaults().Boot
	}
	ctx, stop := context.WithTimeoutCause(ctx, d, fmt.Errorf("not done within %s", d))
	defer stop()
	return targets.RunProgram(ctx, c.Command, []string{
		"KERNSWEEP_TARGET=" + t.Name,
		"KERNSWEEP_KERNEL=" + k.Name,
		"KERNSWEEP_IMAGE=" + k.Image.Kernel,
		"KERNSWEEP_INITRD=" + k.Image.Initrd,
		"KERNSWEEP_DTB=" + k.Image.DTB,
		"KERNSWEEP_CMDLINE=" + k.Args(),
		"KERNSWEEP_NONCE=" + k.Nonce,
	})
}

// Traits of the method, as the block declares them.
func (c *Command) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: c.Cmdline, Image: c.Image}
}
