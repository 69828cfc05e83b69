package orchestrator

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
)

// locks serialises the use of named things on one controller: a target while
// it boots or measures, a peer, whatever `uses` names. A set is always
// taken in sorted order, so that two lanes cannot wait for each other.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{}

	others claims // the same names in other processes
}

// newLocks shares its names with the processes whose runs lie in the folder
// runs; "" shares them with nobody.
func newLocks(runs string) *locks {
	l := &locks{held: map[string]chan struct{}{}}
	if runs != "" {
		l.others.dir = filepath.Join(runs, ".locks")
	}
	return l
}

// acquire takes all names or none, and returns what gives them back.
func (l *locks) acquire(ctx context.Context, names ...string) (release func(), err error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	var got []chan struct{}
	var claimed []func()
	release = func() {
		for _, f := range claimed {
			f()
		}
		for _, c := range got {
			<-c
		}
	}
	for _, n := range names {
		c := l.channel(n)
		select {
		case c <- struct{}{}:
			got = append(got, c)
			f, err := l.others.wait(ctx, n)
			if err != nil {
				release()
				return nil, err
			}
			claimed = append(claimed, f)
		case <-ctx.Done():
			release()
			return nil, context.Cause(ctx)
		}
	}
	return release, nil
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
