package leases

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kernsweep/targets/localproc"
)

// Keeper takes and renews the leases of one process. It is safe for concurrent
// use. One goroutine renews while something is held.
type Keeper struct {
	f     *Folder
	say   func(string)
	start string // of this process

	mu     sync.Mutex
	holder Holder
	holds  map[string]*hold // by id
	stop   context.CancelFunc
	ended  chan struct{} // closed once the renewing goroutine is; nil: none runs
}

// hold is one key that is ours.
type hold struct {
	rec   Record
	key   string
	lease *Lease
	gone  error // why it is ours no more
}

// NewKeeper leases in f for a holder. say is told what a person should know: a
// takeover, trouble with renewing; it must not block.
func (f *Folder) NewKeeper(h Holder, say func(string)) *Keeper {
	start := localproc.Start(os.Getpid())
	if say == nil {
		say = func(string) {}
	}
	return &Keeper{f: f, say: say, start: start, holder: h, holds: map[string]*hold{}}
}

// Folder is where the leases lie.
func (k *Keeper) Folder() *Folder { return k.f }

// record is a new one of this process, valid for ttl.
func (k *Keeper) record(what string, ttl time.Duration) Record {
	k.mu.Lock()
	h := k.holder
	k.mu.Unlock()
	m := k.f.machine
	r := Record{ID: newID(), Owner: h.Owner, Host: m.host, PID: os.Getpid(), Start: k.start, BootID: m.bootID, PIDs: m.pids,
		Run: h.Run, RunDir: h.RunDir, Command: h.Command, What: what, Since: k.f.clock.now().Round(0)}
	return k.f.extend(r, ttl)
}

// extend makes a record valid for ttl from now.
func (f *Folder) extend(r Record, ttl time.Duration) Record {
	r.Until = f.clock.now().Add(ttl).Round(0)
	r.UntilBoot = bootSeconds(f.clock.boot() + ttl)
	return r
}

// SetRun names the run in all leases that are held and that will be taken: it is
// known only after they were taken. dir is the run directory.
func (k *Keeper) SetRun(ctx context.Context, run, dir string) error {
	dir = runPath(dir)
	k.mu.Lock()
	k.holder.Run, k.holder.RunDir = run, dir
	for _, h := range k.holds {
		h.rec.Run, h.rec.RunDir = run, dir
	}
	k.mu.Unlock()
	return k.renew(ctx)
}

// add makes a hold known to the renewal, and starts that.
func (k *Keeper) add(h *hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holds[h.rec.ID] = h
	if k.ended != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop, k.ended = stop, make(chan struct{})
	go k.keep(ctx, k.ended)
}

// drop forgets holds, and ends the renewal with the last.
func (k *Keeper) drop(list []*hold) {
	k.mu.Lock()
	for _, h := range list {
		delete(k.holds, h.rec.ID)
	}
	var ended chan struct{}
	if len(k.holds) == 0 && k.ended != nil {
		k.stop()
		ended, k.ended = k.ended, nil
	}
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// keep renews until its context ends. A renewal that failed is soon tried again.
func (k *Keeper) keep(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	next := time.NewTimer(k.f.times.renew)
	defer next.Stop()
	trouble := "" // of the last renewal
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		wait := k.f.times.renew
		err := k.renew(ctx)
		if err != nil && ctx.Err() == nil {
			k.touch()
			wait /= 5
		}
		if ctx.Err() == nil {
			trouble = k.report(trouble, err)
		}
		next.Reset(wait)
	}
}

// report says trouble with the renewal once, and its end, and returns it: before
// is what it was.
func (k *Keeper) report(before string, err error) (trouble string) {
	if err != nil {
		trouble = err.Error()
	}
	switch {
	case trouble == before:
	case trouble == "":
		k.say("the leases are renewed again")
	default:
		k.say("the leases could not be renewed, which is tried again: " + trouble)
	}
	return trouble
}

// mine lists what is held, in key order.
func (k *Keeper) mine() []*hold {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []*hold
	for _, h := range k.holds {
		if h.gone == nil {
			list = append(list, h)
		}
	}
	slices.SortFunc(list, func(a, b *hold) int { return compare(a.key, b.key) })
	return list
}

// renew writes every lease anew, one that was removed or damaged too. One that
// somebody else has is lost.
func (k *Keeper) renew(ctx context.Context) error {
	list := k.mine()
	if len(list) == 0 {
		return nil
	}
	err := k.f.change(ctx, func(g *guard) error {
		var first error
		for _, h := range list {
			if err := k.renewOne(g, h); errors.Is(err, errBroken) {
				return err
			} else if first == nil {
				first = err
			}
		}
		return first
	})
	if err != nil && ctx.Err() == nil {
		err = k.f.fail(err)
	}
	return err
}

func (k *Keeper) renewOne(g *guard, h *hold) error {
	s, err := k.f.load(h.key)
	if err != nil {
		return err
	}
	if s.Holder != nil && s.Holder.ID != h.rec.ID {
		k.lose(h, *s.Holder)
		return nil
	}
	k.mu.Lock()
	_, held := k.holds[h.rec.ID]
	rec := k.f.extend(h.rec, k.f.times.ttl)
	k.mu.Unlock()
	if !held {
		return nil // given back meanwhile
	}
	s.Holder, s.Damaged = &rec, ""
	if err := g.save(s); err != nil {
		return err
	}
	k.mu.Lock()
	h.rec.Until, h.rec.UntilBoot = rec.Until, rec.UntilBoot
	k.mu.Unlock()
	return nil
}

// touch changes the time of our files where they cannot be written, on a full
// disk: whoever watches them sees that we live.
func (k *Keeper) touch() {
	for _, h := range k.mine() {
		if s, err := k.f.load(h.key); err == nil && s.Holder != nil && s.Holder.ID == h.rec.ID {
			now := time.Now()
			_ = os.Chtimes(filepath.Join(k.f.dir, fileOf(h.key)), now, now)
		}
	}
}

// lose tells everybody that a lease is somebody else's.
func (k *Keeper) lose(h *hold, by Record) {
	k.mu.Lock()
	if h.gone != nil {
		k.mu.Unlock()
		return
	}
	h.gone = &LostError{What: h.rec.What, By: by, At: k.f.clock.now()}
	k.mu.Unlock()
	k.say(h.gone.Error())
	h.lease.lost(h)
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// lapsed says that a renewal is overdue: this process was stopped, or the folder
// cannot be written.
func (k *Keeper) lapsed(h *hold) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.f.clock.boot() >= bootTime(h.rec)
}

// check looks whether a hold is still ours, and renews one that is overdue.
func (k *Keeper) check(ctx context.Context, h *hold) error {
	k.mu.Lock()
	gone := h.gone
	k.mu.Unlock()
	if gone != nil {
		return gone
	}
	if k.lapsed(h) {
		if err := k.renew(ctx); err != nil && ctx.Err() == nil {
			k.say(fmt.Sprintf("the lease of %s could not be renewed, which is tried again: %v", h.rec.What, err))
		}
	} else if s, err := k.f.load(h.key); err == nil && s.Holder != nil && s.Holder.ID != h.rec.ID {
		k.lose(h, *s.Holder)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return h.gone
}
