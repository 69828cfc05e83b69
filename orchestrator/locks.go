package orchestrator

import (
	"context"
	"slices"
	"strings"
	"sync"

	"kernsweep/orchestrator/leases"
)

// locks serialises the use of named things: a target while it boots or measures,
// a peer, whatever `uses` names. Between the lanes of this process it does so
// itself, between processes by leases. A set is always taken in sorted order, so
// that no two can wait for each other.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}

	others *Claims // the same names in other processes; nil: shared with nobody
	shared map[string]*leases.Lease
}

func newLocks(others *Claims) *locks {
	return &locks{held: map[string]chan struct{}{}, others: others, shared: map[string]*leases.Lease{}}
}

// acquire takes all names or none, and returns what gives them back. A target
// must still be ours: the error is a *leases.LostError when it is not.
func (l *locks) acquire(ctx context.Context, names ...string) (release func(), err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var got []string
	release = func() {
		for _, n := range slices.Backward(got) {
			l.giveBack(n)
		}
	}
	for _, n := range names {
		select {
		case l.channel(n) <- struct{}{}:
			got = append(got, n)
			if err := l.share(ctx, n); err != nil {
				release()
				return nil, err
			}
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
	// While this process waited or was stopped, a target may have been taken over.
	if err := l.ours(ctx, names); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// ours says whether the targets among names are still this process's.
func (l *locks) ours(ctx context.Context, names []string) error {
	for _, n := range names {
		if target, ok := strings.CutPrefix(n, targetLock("")); ok {
			if err := l.others.check(ctx, target); err != nil {
				return err
			}
		}
	}
	return nil
}

// share takes the lease of a name that is not leased for the whole run.
func (l *locks) share(ctx context.Context, name string) error {
	if strings.HasPrefix(name, targetLock("")) {
		return nil
	}
	lease, err := l.others.take(ctx, name)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared[name] = lease
	return nil
}

func (l *locks) giveBack(name string) {
	l.mu.Lock()
	lease := l.shared[name]
	delete(l.shared, name)
	l.mu.Unlock()
	if lease != nil {
		if err := lease.Release(); err != nil {
			l.others.once(name, err.Error())
		}
	}
	<-l.channel(name)
}

// broken says whether, of names that are held, one was taken over by another
// process: what was measured meanwhile may not have been alone.
func (l *locks) broken(ctx context.Context, names ...string) error {
	for _, n := range names {
		l.mu.Lock()
		lease := l.shared[n]
		l.mu.Unlock()
		if lease == nil {
			continue
		}
		if err := lease.Check(ctx, ""); err != nil {
			return err
		}
	}
	return l.ours(ctx, names)
}

func (l *locks) channel(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.held[name]
	if c == nil {
		c = make(chan struct{}, 1)
		l.held[name] = c
	}
	return c
}
