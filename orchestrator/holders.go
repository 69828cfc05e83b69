package orchestrator

import (
	"context"
	"sync"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/targets"
)

// Holders says which targets other processes hold, and who they are, by the
// target's name. Nothing is claimed and nobody is waited for. The error is that
// of the folder.
func Holders(ctx context.Context, o ClaimOptions, list []*config.Target) (map[string]leases.Record, error) {
	records, err := leases.List(o.Folder)
	if err != nil {
		return nil, err
	}
	held := map[string]leases.Record{}
	for _, r := range records {
		if r.State != leases.Gone {
			held[r.Key] = r
		}
	}
	if len(held) == 0 {
		return nil, nil
	}
	say := o.Say
	if say == nil {
		say = func(string) {}
	}
	found := map[string]leases.Record{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	room := make(chan struct{}, lookUpMost)
	for _, t := range list {
		if targets.TraitsOf(t.Boot).Local {
			continue
		}
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			for _, key := range (addresses{o.Address, say}).keys(ctx, t) {
				if r, ok := held[key]; ok {
					mu.Lock()
					found[t.Name] = r
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return found, nil
}
