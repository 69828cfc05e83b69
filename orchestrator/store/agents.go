package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads/agentbin"
	"kernsweep/workloads/deploy"
)

// Agents gives a run the agents that it began with, and keeps new ones. It is
// safe for concurrent lanes.
type Agents struct {
	store *Store
	run   *results.Run // a handle of its own: others read theirs meanwhile
	note  func(string)

	turn chan struct{} // holds one token: whoever has it may use the rest
	have map[string]*agentbin.Binary
}

// NewAgents is the agents of the run in dir. note gets what a person should know.
func NewAgents(s *Store, dir string, note func(string)) (*Agents, error) {
	run, err := results.Open(dir)
	if err != nil {
		return nil, err
	}
	a := &Agents{store: s, run: run, note: note, turn: make(chan struct{}, 1), have: map[string]*agentbin.Binary{}}
	a.turn <- struct{}{}
	return a, nil
}

// Hashes of the agents that the run has used, by name; nil when another lane
// does not let go of them in time.
func (a *Agents) Hashes(ctx context.Context) map[string]string {
	select {
	case <-a.turn:
	case <-ctx.Done():
		return nil
	}
	defer func() { a.turn <- struct{}{} }()
	return maps.Clone(a.run.Meta.Agents)
}

// Get is the agent of a name ("go/mipsle", "shell") that the run used before;
// the first time it is the fresh one, which is kept. Its error is fresh's.
func (a *Agents) Get(ctx context.Context, name string, fresh func(context.Context) (*agentbin.Binary, error)) (*agentbin.Binary, error) {
	select {
	case <-a.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { a.turn <- struct{}{} }()
	if b := a.have[name]; b != nil {
		return b, nil
	}
	hash := a.run.Meta.Agents[name]
	if !isHash(hash) {
		hash = ""
	}
	if hash != "" {
		b, err := a.read(ctx, name, hash)
		if err == nil {
			a.have[name] = b
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			a.note(fmt.Sprintf("agent %s: %v", name, err))
		}
	}
	b, err := fresh(ctx)
	if err != nil {
		return nil, err
	}
	a.have[name] = b
	if hash != "" && hash != b.Hash {
		a.note(fmt.Sprintf("agent %s: the one that the run began with (SHA-256 %s…) is not in the store; this kernsweep's own is used (%s…)",
			name, hash[:12], b.Hash[:12]))
		return b, nil
	}
	if err := a.keep(ctx, name, b); err != nil {
		a.note(fmt.Sprintf("agent %s is not kept, so a rerun may use another: %v", name, err))
	}
	return b, nil
}

func (a *Agents) read(ctx context.Context, name, hash string) (*agentbin.Binary, error) {
	if err := a.store.Verify(ctx, hash, agentFile(name)); err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(a.store.Path(hash, agentFile(name)))
	if err != nil {
		return nil, err
	}
	return agentbin.Pack(strings.TrimPrefix(name, "go/"), raw)
}

func (a *Agents) keep(ctx context.Context, name string, b *agentbin.Binary) error {
	raw, err := b.Raw()
	if err != nil {
		return err
	}
	release, err := a.store.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	hash, err := a.store.PutBytes(ctx, agentFile(name), raw)
	if err != nil {
		return err
	}
	if a.run.Meta.Agents[name] == hash {
		return nil
	}
	meta := a.run.Meta
	meta.Agents = maps.Clone(meta.Agents)
	if meta.Agents == nil {
		meta.Agents = map[string]string{}
	}
	meta.Agents[name] = hash
	return a.run.SetMeta(meta)
}

// agentFile is an agent's name in the store.
func agentFile(name string) string { return "kernsweep-agent-" + strings.ReplaceAll(name, "/", "-") }

// AgentDifferences says, a sentence each, which agents of a run this kernsweep
// would bring otherwise, as far as it has them built in.
func (s *Store) AgentDifferences(ctx context.Context, run *results.Run) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(run.Meta.Agents)) {
		hash := run.Meta.Agents[name]
		own := builtIn(ctx, name)
		switch err := s.Verify(ctx, hash, agentFile(name)); {
		case own == hash:
		case err != nil:
			out = append(out, fmt.Sprintf("agent %s: the one that the run used is not in the store, and this kernsweep's own is used", name))
		case own != "":
			out = append(out, fmt.Sprintf("agent %s: this kernsweep brings another; the run's own is used, from the store", name))
		}
	}
	return out
}

// builtIn is the hash of this kernsweep's own agent, "" when it is not at hand.
func builtIn(ctx context.Context, name string) string {
	if name == "shell" {
		return deploy.ShellHash()
	}
	arch := strings.TrimPrefix(name, "go/")
	if !slices.Contains(agentbin.Embedded(), arch) {
		return ""
	}
	b, err := agentbin.Get(ctx, arch, nil)
	if err != nil {
		return ""
	}
	return b.Hash
}
