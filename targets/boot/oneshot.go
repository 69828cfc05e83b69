package boot

import (
	"context"
	"errors"
	"fmt"
	"path"

	"kernsweep/targets"
)

// oneShot is what methods share that let the running system start a kernel once.
type oneShot struct {
	Cmdline
	notes []string // of the newest boot
}

// Traits of the method.
func (*oneShot) Traits() targets.BootTraits {
	return targets.BootTraits{Cmdline: true, Image: true, Running: true, Returns: true}
}

// Notes of the newest boot.
func (o *oneShot) Notes() []string { return o.notes }

// start runs a method's own part over the link to the running system, and names
// the method in its error.
func (o *oneShot) start(ctx context.Context, name string, t *targets.Target, k targets.Kernel,
	boot func(context.Context, *targets.Target, targets.Kernel) error) error {
	o.notes = nil
	if t.Held == nil {
		return errors.New(name + ": no link to the running system")
	}
	if err := boot(ctx, t, k); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// absolute refuses a path that is not from the root on; "" is none.
func absolute(name, p string) error {
	if p != "" && !path.IsAbs(p) {
		return fmt.Errorf("%s = %q: want an absolute path on the target", name, p)
	}
	return nil
}
