package orchestrator

import (
	"context"
	"slices"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/targets"
)

// LeaseIsOf says whether a lease is of a target, as far as its configuration alone
// tells: no name is looked up. A lease of a target of that name counts, too.
func LeaseIsOf(r leases.Record, t *config.Target) bool {
	if targets.TraitsOf(t.Boot).Local {
		return false
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // so that nothing is asked of a name server
	return r.What == whatTarget(t.Name) || slices.Contains(addresses{say: func(string) {}}.keys(ctx, t), r.Key)
}
