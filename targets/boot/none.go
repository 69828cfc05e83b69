package boot

import (
	"context"

	"kernsweep/targets"
)

// None starts nothing: it only lets the running kernel be verified, so it gives
// one boot per run, unproven unless an earlier boot_id is known.
type None struct{}

// Boot does nothing.
func (*None) Boot(context.Context, *targets.Target, targets.Kernel) error { return nil }

// Traits of the method.
func (*None) Traits() targets.BootTraits { return targets.BootTraits{OnlyOnce: true} }
