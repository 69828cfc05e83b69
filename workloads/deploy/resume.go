package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

// Spooled says where an agent writes the evidence of a task that was begun.
type Spooled struct {
	File   string // path of the spool on the machine; its agent's pid and start time stand in it
	Prefix string // of the task's raw files here
}

// ErrNotBegun means that an earlier session never began the task: the trial has
// to be repeated from its start.
var ErrNotBegun = errors.New("the task was not begun before the run was broken off")

// GoneError says that the evidence of a task cannot be had any more, or only its
// beginning, which is kept: the trial has to be repeated.
type GoneError struct {
	Spool string // path on the machine
	Why   string
	Err   error // what was wrong with the spool; may be nil
}

func (e *GoneError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%v: %s (%s)", e.Err, e.Why, e.Spool)
	}
	return e.Spool + ": " + e.Why
}

func (e *GoneError) Unwrap() error { return e.Err }

// Tracked is like a, but calls begin before each task is started on the machine.
// A task whose begin fails is not started. Begin may be called concurrently.
func (a *Agent) Tracked(begin func(Spooled) error) workloads.Agent { return &tracked{a, begin} }

type tracked struct {
	*Agent
	begin func(Spooled) error
}

// Run implements workloads.Agent.
func (t *tracked) Run(ctx context.Context, task workloads.Task) error {
	return t.track(ctx, task, t.begin)
}

// Resuming stands in for the agent that an earlier session began tasks with: its
// Run starts nothing, it waits for the begun task with the same Prefix and
// collects it. Each begun task is used once. Beside the errors of Agent.Run it
// returns ErrNotBegun and *GoneError. The spools must have been spared by
// Options.Spare.
func (a *Agent) Resuming(begun []Spooled) workloads.Agent {
	return &resuming{Agent: a, begun: slices.Clone(begun)}
}

type resuming struct {
	*Agent
	mu    sync.Mutex
	begun []Spooled
}

// Run implements workloads.Agent.
func (s *resuming) Run(ctx context.Context, t workloads.Task) error {
	b, ok := s.take(t.Prefix)
	if !ok {
		return fmt.Errorf("%s: %w", t.Argv[0], ErrNotBegun)
	}
	r := s.newRun(t, b.File)
	s.remember(r.spool)
	if t.Ready != nil {
		t.Ready() // it was, or its spool says why not
	}
	return r.do(ctx, r.reattach)
}

func (s *resuming) take(prefix string) (Spooled, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.begun, func(b Spooled) bool { return b.Prefix == prefix })
	if i < 0 {
		return Spooled{}, false
	}
	b := s.begun[i]
	s.begun = slices.Delete(s.begun, i, i+1)
	return b, true
}

// reattach gets the spool of a task that an earlier session began: the one that
// had arrived, or the machine's.
func (r *run) reattach(ctx context.Context) error {
	if err := r.keepLonger(); err != nil {
		return err
	}
	if r.complete() != nil {
		if err := r.fetch(ctx); err != nil {
			return err
		}
	}
	how, orphan, err := r.verdict()
	if err != nil {
		return err
	}
	defer r.discard(ctx)
	if orphan {
		return &GoneError{Spool: r.spool, Why: how}
	}
	r.ended(how)
	return nil
}

// fetch collects the spool from the machine, over a second link if need be.
func (r *run) fetch(ctx context.Context) error {
	err := r.collect(ctx, r.a.link())
	var link *targets.LinkError
	if errors.As(err, &link) && ctx.Err() == nil && r.a.o.Redial != nil {
		r.a.o.Note("link lost while a spool was collected (" + err.Error() + "); dialling again")
		conn, derr := r.redial(ctx)
		if derr != nil {
			return fmt.Errorf("collecting %s: %w; dialling again: %w", r.spool, err, derr)
		}
		err = r.collect(ctx, conn)
	}
	var gone *GoneError
	if errors.As(err, &gone) {
		r.discard(ctx)
	}
	return err
}

// verdict is how the task ended, as the whole spool here says it; orphan means
// that its agent gave up waiting for a controller.
func (r *run) verdict() (how string, orphan bool, err error) {
	f, err := os.Open(r.file)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	s, err := wire.Read(f)
	if err != nil {
		return "", false, err
	}
	how = s.End["status"]
	if reason := s.End["reason"]; reason != "" {
		how += ": " + reason
	}
	return how, strings.HasPrefix(s.End["reason"], wire.Orphaned), nil
}
