package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options of Take.
type Options struct {
	Wait bool         // for what others hold, in the order of asking
	Say  func(string) // told for whom it waits; nil: nobody
}

// Take leases everything that is wanted, in the order of the keys, or nothing.
// What others hold is a *HeldError, or is waited for until the context ends. A
// lease that ran out but whose holder may live is watched for some seconds first,
// whatever the options say.
func (k *Keeper) Take(ctx context.Context, wants []Want, o Options) (*Lease, error) {
	wants = slices.Clone(wants)
	slices.SortStableFunc(wants, func(a, b Want) int { return compare(a.Key, b.Key) })
	wants = slices.CompactFunc(wants, func(a, b Want) bool { return a.Key == b.Key })
	t := &taking{k: k, wants: wants, o: o, lease: &Lease{k: k}}
	if o.Say == nil {
		t.o.Say = func(string) {}
	}
	err := t.run(ctx)
	if err != nil {
		return nil, errors.Join(err, t.undo())
	}
	return t.lease, nil
}

// taking is one call of Take.
type taking struct {
	k     *Keeper
	wants []Want
	o     Options
	lease *Lease

	at     int     // the first of wants that is not ours
	ticket *Record // our place in the queue for wants[at]; nil: none
	watch  watched // of wants[at]
	said   string
}

// blocked says why wants[at] is not to be had now.
type blocked struct {
	by     Record
	queued bool   // by waits for it, before us
	watch  string // why it is watched instead; "" = it is not
	before int    // in the queue
}

func (t *taking) run(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	tick := time.NewTicker(t.k.f.times.poll)
	defer tick.Stop()
	first := true
	for {
		var b *blocked
		err := t.k.f.change(ctx, func(g *guard) (err error) {
			if first {
				g.tidy()
				first = false
			}
			b, err = t.attempt(g)
			return err
		})
		switch {
		case ctx.Err() != nil && (err != nil || b != nil):
			return context.Cause(ctx)
		case err != nil:
			return t.k.f.fail(err)
		case b == nil:
			return nil
		}
		if b.watch == "" && !t.o.Wait {
			return &HeldError{What: t.wants[t.at].What, Holder: b.by, Queued: b.queued}
		}
		t.tell(b)
		if t.lease.Check(ctx, "") != nil { // this process was stopped while it waited
			if err := t.undo(); err != nil {
				return err
			}
			t.at, t.ticket, t.watch = 0, nil, watched{}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// tell says once for whom it waits.
func (t *taking) tell(b *blocked) {
	what := t.wants[t.at].What
	text := fmt.Sprintf("%s is held by %s since %s; waiting for it, %s", what, b.by, stamp(b.by.Since), before(b.before))
	switch {
	case b.watch != "":
		text = fmt.Sprintf("%s: %s; watching for %s whether its holder lives", what, b.watch, t.k.f.times.watch)
	case b.queued:
		text = fmt.Sprintf("%s: waiting behind %s, who waits since %s", what, b.by, stamp(b.by.Since))
	}
	if text != t.said {
		t.said = text
		t.o.Say(text)
	}
}

func before(n int) string {
	if n == 0 {
		return "nobody is before us"
	}
	return fmt.Sprintf("%d before us", n)
}

// attempt takes what can be had, in order, and queues for the first that cannot.
func (t *taking) attempt(g *guard) (*blocked, error) {
	for t.at < len(t.wants) {
		b, err := t.one(g)
		if err != nil || b != nil {
			return b, err
		}
		t.at, t.ticket, t.watch = t.at+1, nil, watched{}
	}
	return nil, nil
}

// one takes wants[at], or says who has it.
func (t *taking) one(g *guard) (*blocked, error) {
	f, w := t.k.f, t.wants[t.at]
	s, err := f.load(w.Key)
	if err != nil {
		return nil, err
	}
	mine := func(r Record) bool { return t.ticket != nil && r.ID == t.ticket.ID }
	s.Queue = slices.DeleteFunc(s.Queue, func(r Record) bool { return !mine(r) && !f.waits(r) })
	verdict, why := f.judge(s, &t.watch)
	place := slices.IndexFunc(s.Queue, mine)
	first := len(s.Queue) == 0 || place == 0
	if verdict == expired && first {
		return nil, t.win(g, s, why)
	}
	b := &blocked{before: len(s.Queue)}
	if place >= 0 {
		b.before = place
	}
	switch {
	case verdict == live:
		b.by = *s.Holder
	case verdict == unsure:
		b.watch = why
	default:
		b.by, b.queued = s.Queue[0], true
	}
	if b.watch == "" && !t.o.Wait {
		return b, nil
	}
	return b, t.queue(g, s, place)
}

// win makes wants[at] ours. The note for the run that had it is left first: a
// crash in between must not lose it.
func (t *taking) win(g *guard, s state, why string) error {
	w := t.wants[t.at]
	rec := t.k.record(w.What, t.k.f.times.ttl)
	if why != "" {
		over := Takeover{What: w.What, Why: why}
		if s.Holder != nil {
			over.From = *s.Holder
			over.From.Key = w.Key
		}
		if err := g.post(over, rec); err != nil {
			return err
		}
		if !slices.ContainsFunc(t.lease.takeovers, over.same) {
			t.lease.takeovers = append(t.lease.takeovers, over)
			t.k.say(over.String())
		}
	}
	s.Holder, s.Damaged = &rec, ""
	s.Queue = slices.DeleteFunc(s.Queue, func(r Record) bool { return t.ticket != nil && r.ID == t.ticket.ID })
	if err := g.save(s); err != nil {
		return err
	}
	h := &hold{rec: rec, key: w.Key, lease: t.lease}
	t.lease.mu.Lock()
	t.lease.holds = append(t.lease.holds, h)
	t.lease.mu.Unlock()
	t.k.add(h)
	return nil
}

// same says that it is about the same thing and holder: a thing may have several keys.
func (t Takeover) same(o Takeover) bool {
	return o.What == t.What && o.From.PID == t.From.PID && o.From.Start == t.From.Start && o.From.RunDir == t.From.RunDir
}

// queue takes or keeps our place in the queue.
func (t *taking) queue(g *guard, s state, place int) error {
	f := t.k.f
	switch {
	case place < 0: // new, or dropped while we were stopped
		r := t.k.record(t.wants[t.at].What, f.times.queue)
		s.Queue = append(s.Queue, r)
		t.ticket = &r
	case f.clock.boot()+f.times.queue*3/4 < bootTime(s.Queue[place]):
		return nil // it is young
	default:
		s.Queue[place] = f.extend(s.Queue[place], f.times.queue)
	}
	return g.save(s)
}

// undo gives back what was taken, and the place in the queue.
func (t *taking) undo() error {
	err := t.lease.Release()
	if t.ticket == nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), t.k.f.times.release)
	defer stop()
	return errors.Join(err, t.k.f.change(ctx, func(g *guard) error {
		return t.k.giveBack(g, t.wants[t.at].Key, t.ticket.ID)
	}))
}
