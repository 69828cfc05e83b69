package orchestrator

import (
	"context"
	"path/filepath"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/store"
	"kernsweep/targets"
	"kernsweep/workloads/agentbin"
)

// overwrittenTime bounds the look at the files that the run came from, at its end.
const overwrittenTime = 10 * time.Second

// keeper is a run's part in the store: the agents it began with, and the files
// whose bytes it boots.
type keeper struct {
	agents *store.Agents
	watch  *store.Watch
}

// keep opens the run's part in the store.
func (r *Runner) keep(ctx context.Context) (*keeper, error) {
	s, err := store.Open(filepath.Dir(r.Run.Dir()))
	if err != nil {
		return nil, err
	}
	agents, err := store.NewAgents(s, r.Run.Dir(), func(text string) {
		_ = r.append(ctx, results.Record{Kind: results.KindNote, Note: text})
	})
	if err != nil {
		return nil, err
	}
	return &keeper{agents, store.NewWatch(ctx, r.Run.Dir(), len(r.Before.Sessions) == 0)}, nil
}

// agentBytes is the run's own agent for a GOARCH, for boot methods that run it
// on the target.
func (k *keeper) agentBytes(goarch string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), buildTime)
	defer stop()
	b, err := k.agents.Get(ctx, "go/"+goarch, func(ctx context.Context) (*agentbin.Binary, error) {
		return agentbin.Get(ctx, goarch, func(string) {})
	})
	if err != nil {
		return nil, err
	}
	return b.Raw()
}

// done notes, at the end of a run, which files were overwritten meanwhile, and
// lets the run's reports know its agents.
func (k *keeper) done(ctx context.Context, r *Runner) {
	ctx, stop := targets.Afterwards(ctx, overwrittenTime)
	defer stop()
	for _, text := range k.watch.Overwritten(ctx) {
		_ = r.append(ctx, results.Record{Kind: results.KindNote, Note: text})
	}
	if used := k.agents.Hashes(ctx); used != nil {
		r.Run.Meta.Agents = used
	}
}
