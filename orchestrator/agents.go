package orchestrator

import (
	"context"
	"time"

	"kernsweep/workloads/agentbin"
)

// buildTime bounds the build of an agent that is not embedded.
const buildTime = 5 * time.Minute

// AgentBytes is the agent's program for a GOARCH, for boot methods that run it on
// the target.
func AgentBytes(goarch string) ([]byte, error) {
	ctx, stop := context.WithTimeout(context.Background(), buildTime)
	defer stop()
	b, err := agentbin.Get(ctx, goarch, func(string) {})
	if err != nil {
		return nil, err
	}
	return b.Raw()
}
