package leases

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Lease is a set of keys that was taken together.
type Lease struct {
	k         *Keeper
	takeovers []Takeover

	mu       sync.Mutex
	holds    []*hold
	watchers map[int]watcher
	next     int // number of a watcher
}

type watcher struct {
	what string
	tell func(error)
}

// Takeovers are the leases that were taken from holders that were gone.
func (l *Lease) Takeovers() []Takeover { return l.takeovers }

func (l *Lease) list(what string) []*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*hold
	for _, h := range l.holds {
		if what == "" || h.rec.What == what {
			list = append(list, h)
		}
	}
	return list
}

// Check says whether everything that has this What is still ours; "" asks for
// all. It reads the folder, and renews what is overdue. The error is a *LostError;
// a folder that cannot be read is none: the lease may well be ours.
func (l *Lease) Check(ctx context.Context, what string) error {
	for _, h := range l.list(what) {
		if err := l.k.check(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// Watch tells, once, when something with this What is lost; at once if it is
// already. tell must not block, nor release the lease. stop ends that.
func (l *Lease) Watch(what string, tell func(error)) (stop func()) {
	l.mu.Lock()
	n := l.next
	l.next++
	if l.watchers == nil {
		l.watchers = map[int]watcher{}
	}
	l.watchers[n] = watcher{what, tell}
	l.mu.Unlock()
	stop = func() { l.forget(n) }
	for _, h := range l.list(what) {
		l.k.mu.Lock()
		gone := h.gone
		l.k.mu.Unlock()
		if gone != nil && l.forget(n) {
			tell(gone)
		}
	}
	return stop
}

// forget removes a watcher, and says whether it was still there.
func (l *Lease) forget(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, there := l.watchers[n]
	delete(l.watchers, n)
	return there
}

// lost tells the watchers, and gives the other keys of the same thing up: it is
// not ours any more.
func (l *Lease) lost(h *hold) {
	l.mu.Lock()
	var tell []func(error)
	for n, w := range l.watchers {
		if w.what == h.rec.What {
			tell = append(tell, w.tell)
			delete(l.watchers, n)
		}
	}
	l.mu.Unlock()
	l.k.mu.Lock()
	for _, other := range l.k.holds {
		if other.lease == l && other.rec.What == h.rec.What && other.gone == nil {
			other.gone = h.gone // it runs out, and nobody is watched for who does not renew
		}
	}
	l.k.mu.Unlock()
	for _, f := range tell {
		f(h.gone)
	}
}

// Release gives everything back that is still ours. It may be called more than
// once. An error leaves the lease to run out, which it does at once when this
// process ends.
func (l *Lease) Release() error {
	l.mu.Lock()
	holds := l.holds
	l.holds = nil
	l.mu.Unlock()
	if len(holds) == 0 {
		return nil
	}
	l.k.drop(holds)
	ctx, stop := context.WithTimeoutCause(context.Background(), l.k.f.times.release, errors.New("the folder's lock was not to be had in time"))
	defer stop()
	err := l.k.f.change(ctx, func(g *guard) error {
		var errs []error
		for _, h := range holds {
			errs = append(errs, l.k.giveBack(g, h.key, h.rec.ID))
		}
		l.k.sweep(g, holds[0].rec.RunDir)
		return errors.Join(errs...)
	})
	if err != nil {
		err = l.k.f.fail(err)
	}
	return err
}

// giveBack removes the record with this id from a key's file, as holder or from
// its queue; those that wait for nothing any more go with it.
func (k *Keeper) giveBack(g *guard, key, id string) error {
	s, err := k.f.load(key)
	if err != nil {
		return err
	}
	before := len(s.Queue)
	s.Queue = slices.DeleteFunc(s.Queue, func(r Record) bool { return r.ID == id || !k.f.waits(r) })
	switch {
	case s.Holder != nil && s.Holder.ID == id:
		s.Holder = nil
	case len(s.Queue) == before:
		return nil
	}
	return g.save(s)
}

// sweep removes what an earlier process of this run held when it died, and what
// the run had no use for since. What cannot be read or removed is left.
func (k *Keeper) sweep(g *guard, runDir string) {
	list, err := k.f.list()
	if err != nil || runDir == "" {
		return
	}
	for _, r := range list {
		if r.State == Gone && r.RunDir == runDir {
			_ = k.giveBack(g, r.Key, r.ID)
		}
	}
}
