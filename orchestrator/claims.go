package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// ClaimOptions say who claims, and where.
type ClaimOptions struct {
	Folder string // of the leases, see leases.Find
	Holder leases.Holder
	// Address says where a target's SSH settings lead: host and port of each machine
	// on the way. nil: as they stand there.
	Address func(context.Context, targets.SSH) ([]string, error)
	Wait    bool // for targets that others hold
	// Say is told what a person should know: for whom it waits, whose lease was taken
	// over, trouble with renewing. It must not block; nil: nobody.
	Say func(string)
}

// Claims are the leases of this process: its targets until Release, and what its
// trials share with others for as long as each needs it. A nil *Claims shares with
// nobody and holds nothing.
type Claims struct {
	keeper *leases.Keeper
	lease  *leases.Lease

	mu   sync.Mutex
	say  func(string)
	note func(string) // for the journal of the run; nil: none is open
	told map[string]bool
}

// Claim leases the real targets of a plan, and those its trials use as peers,
// until Release: two runs on one machine would measure each other. The error is a
// *leases.HeldError, the context's, or of the folder.
func Claim(ctx context.Context, o ClaimOptions, lab *config.Lab, p *plan.Plan) (*Claims, error) {
	var names []string
	for _, l := range p.Lanes {
		names = append(append(names, l.Target), peersOf(lab, l)...)
	}
	return ClaimTargets(ctx, o, lab, names...)
}

// ClaimTargets is Claim for targets by name. Virtual ones are nobody's: every
// run starts its own. With none but those, a folder that cannot be used is no
// error, and the Claims may be nil.
func ClaimTargets(ctx context.Context, o ClaimOptions, lab *config.Lab, names ...string) (*Claims, error) {
	c := &Claims{say: o.Say, told: map[string]bool{}}
	if c.say == nil {
		c.say = func(string) {}
	}
	var real []*config.Target
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		if t := lab.Target(n); t != nil && !targets.TraitsOf(t.Boot).Local {
			real = append(real, t)
		}
	}
	wants, err := addresses{o.Address, c.say}.wants(ctx, real)
	if err != nil {
		return nil, err
	}
	f, err := leases.Open(o.Folder)
	if err != nil && len(wants) == 0 {
		c.say("what trials share is not leased, another run may use it at the same time: " + err.Error())
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.keeper = f.NewKeeper(o.Holder, c.tell)
	c.lease, err = c.keeper.Take(ctx, wants, leases.Options{Wait: o.Wait, Say: c.say})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// peersOf are the targets that the trials of a lane use as peers.
func peersOf(lab *config.Lab, l plan.Lane) []string {
	var names []string
	for _, b := range l.Boots {
		for _, s := range b.Trials {
			names = append(names, peerOf(lab, s.Workload, s.Scenario)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// peerOf is the target that a scenario uses as its peer, if it is one.
func peerOf(lab *config.Lab, workload, scenario string) []string {
	if w := lab.Workload(workload); w != nil {
		for _, s := range w.Scenarios {
			if s.Name == scenario && s.Run.Needs().Peer && s.Common.Peer != "controller" {
				return []string{strings.TrimPrefix(s.Common.Peer, "target.")}
			}
		}
	}
	return nil
}

// Release gives every target back, those that somebody else took over excepted.
// It may be called more than once. After an error the leases end with this process.
func (c *Claims) Release() error {
	if c == nil {
		return nil
	}
	return c.lease.Release()
}

// SetRun names the run that the claims are for, once it has a directory.
func (c *Claims) SetRun(ctx context.Context, run *results.Run) error {
	if c == nil {
		return nil
	}
	return c.keeper.SetRun(ctx, run.Name(), run.Dir())
}

// Deliver writes into the run's journal, by add, which leases were taken over for
// it, and what other runs left for it to note, and does what Notify does.
func (c *Claims) Deliver(ctx context.Context, run *results.Run, owner string, add func(note string) error) error {
	if c == nil {
		return nil
	}
	for _, t := range c.lease.Takeovers() {
		if leases.SameRun(t.From.RunDir, run.Dir()) {
			continue // its note lies there for us to fetch
		}
		if err := add(t.String()); err != nil {
			return err
		}
	}
	return errors.Join(c.fetch(ctx, run, add), c.Notify(ctx, run.Dir(), owner))
}

// Notify writes into the runs that leases were taken from, but for one, that they
// lost them, as owner, where no other process has them open; else that waits for
// whoever opens them next.
func (c *Claims) Notify(ctx context.Context, but, owner string) error {
	if c == nil {
		return nil
	}
	var from []string
	for _, t := range c.lease.Takeovers() {
		if dir := t.From.RunDir; dir != "" && !leases.SameRun(dir, but) {
			from = append(from, dir)
		}
	}
	slices.Sort(from)
	var errs []error
	for _, dir := range slices.Compact(from) {
		errs = append(errs, c.deliverTo(ctx, dir, owner))
	}
	return errors.Join(errs...)
}

// deliverTo is for a run whose process is gone. One that cannot be opened keeps
// its notes waiting.
func (c *Claims) deliverTo(ctx context.Context, dir, owner string) error {
	run, err := results.Open(dir)
	if err != nil {
		return nil
	}
	w, err := run.OpenWriter(owner)
	if err != nil {
		return nil
	}
	err = c.keeper.Folder().Deliver(ctx, dir, func(note string) error {
		_, err := w.Append(ctx, results.Record{Kind: results.KindNote, Note: note})
		return err
	})
	return errors.Join(err, w.Close())
}

// fetch hands over what other runs left for this one to note.
func (c *Claims) fetch(ctx context.Context, run *results.Run, add func(note string) error) error {
	if c == nil {
		return nil
	}
	return c.keeper.Folder().Deliver(ctx, run.Dir(), add)
}

// tell passes on what a person should know.
func (c *Claims) tell(text string) {
	c.mu.Lock()
	note := c.note
	c.mu.Unlock()
	if note != nil {
		note(text)
	} else {
		c.say(text)
	}
}

// journal sends what is told from now on to note instead, until stop.
func (c *Claims) journal(note func(string)) (stop func()) {
	if c == nil {
		return func() {}
	}
	set := func(f func(string)) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.note = f
	}
	set(note)
	return func() { set(nil) }
}

// check says whether a target is still ours; the error is a *leases.LostError.
func (c *Claims) check(ctx context.Context, target string) error {
	if c == nil {
		return nil
	}
	return c.lease.Check(ctx, whatTarget(target))
}

// watch tells, once, when a target is taken over by somebody else.
func (c *Claims) watch(target string, lost func(error)) (stop func()) {
	if c == nil {
		return func() {}
	}
	return c.lease.Watch(whatTarget(target), lost)
}

func whatTarget(name string) string { return "target " + name }
