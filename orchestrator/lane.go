package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// lane executes the boots of one target, one after another.
type lane struct {
	r      *Runner
	plan   *plan.Lane
	conf   *config.Target
	target *targets.Target // a copy: drivers may fill in host and port
	log    *zap.Logger

	boots    int                     // numbered so far
	attempts map[results.SlotKey]int // made so far
	lastID   string                  // boot_id of the boot before
	verified bool                    // a boot counted in this session
	pushed   *deploy.Agent           // what to remove at the end; nil: nothing
	console  *consoleLog             // of the newest boot; nil: none

	standing
	helm   *helm
	byHand bool // the target was withdrawn by a person
	costs  *plan.Costs
	cut    *results.Cut // what --until leaves out; nil: nothing yet
	noTime bool         // not even for the pause after a failure
	full   bool         // boots = "auto" came to its end
	sized  int          // block after which the intervals were looked at last

	touched  bool        // a boot was asked for in this session
	at       string      // kernel of the proven boot that the target is in; "" = not known
	stranded bool        // the last try to bring it back failed
	away     atomic.Bool // it boots or is brought back: that it does not answer says nothing
	owed     []owing     // knobs to restore
	ending   ending

	machine *targets.Identity // of its first boot in the run; nil: not known
	before  *legacy           // what a resumed lane takes over; nil: nothing

	left       targets.Crashes // what crashed kernels leave on the target
	looked     bool            // for that, in this session
	fell       int             // newest boot that crashed and was not looked into; 0 = none
	fellKernel string
}

func (r *Runner) newLane(p *plan.Lane) (*lane, error) {
	conf := r.Lab.Target(p.Target)
	if conf == nil {
		return nil, fmt.Errorf("target %s is in the plan but not in the configuration", p.Target)
	}
	t := conf.Target
	t.Dial, t.Serve, t.Agent = r.Dial, r.Serve, AgentBytes
	l := &lane{r: r, plan: p, conf: conf, target: &t, log: r.Log.With(zap.String("target", p.Target)),
		boots: r.Run.NextBoot(p.Target, r.Before) - 1, attempts: attemptsBefore(r.Before, p.Target),
		standing: newStanding(), costs: plan.NewCosts(r.Lab, r.Plan, p.Target, r.History), ending: ending{over: make(chan struct{})}, helm: newHelm()}
	if t.Power != nil && !targets.TraitsOf(t.Boot).Local {
		l.supplied(t.Power)
	}
	l.machine = known(r.Before, p.Target)
	if r.Resume {
		l.standing = policyBefore(r.Before, p.Target)
		l.byHand = strings.HasPrefix(l.withdrawn, results.SkippedBy)
		l.helm.inherit(r.Before, p.Target, undertaking(r.Before))
		l.inherit()
	}
	return l, nil
}

// attemptsBefore counts the attempts that earlier sessions of the run made.
func attemptsBefore(m *results.Model, lane string) map[results.SlotKey]int {
	n := map[results.SlotKey]int{}
	for _, t := range m.Trials {
		if t.Slot.Target != lane {
			continue
		}
		for _, a := range t.Attempts {
			n[t.Slot.Key()] = max(n[t.Slot.Key()], a.Number)
		}
	}
	return n
}

func (l *lane) run(ctx context.Context) {
	ctx, unguard := l.leased(ctx)
	defer unguard()
	l.record(ctx, results.Record{Kind: results.KindLane, Note: results.NoteBegan})
	if l.withdrawn == "" && !l.enough(ctx, 0) && l.startable(ctx, 0) {
		l.wake(ctx)
	}
	last := results.Record{Kind: results.KindLane, Note: results.NoteEnded}
	for i, b := range l.plan.Boots {
		l.helm.reach(i)
		l.idle(ctx, l.splits(i), l.costs.Boot(b), b.Kernel)
		l.heed()
		if ctx.Err() == nil && !l.enough(ctx, i) && l.startable(ctx, i) {
			l.boot(ctx, b)
		}
	}
	if ctx.Err() == nil {
		l.enough(ctx, len(l.plan.Boots)) // says how wide the intervals still are
	} else {
		last.Note = results.NoteInterrupted
	}
	l.helm.close()
	if l.heed(); l.withdrawn != "" {
		last.Note, last.Reason = results.NoteQuarantined, l.withdrawn
		if l.byHand {
			last.Note = results.NoteGivenUp
		}
	}
	if why := l.robbed(ctx); why != nil {
		last.Note, last.Reason = results.NoteInterrupted, why.Error()
	}
	l.leave(ctx)
	l.record(ctx, last)
}

// skipReason says why a boot is not even tried, "" when it is. again: it was
// tried before, and trials of it are left.
func (l *lane) skipReason(b plan.Boot, again bool) string {
	byHand := l.helm.leftOut(b.Kernel)
	switch {
	case byHand != "":
		return byHand
	case l.withdrawn != "":
		return "target quarantined: " + firstWords(l.withdrawn)
	case l.verified && !again && l.onlyOnce():
		return fmt.Sprintf("boot method %q gives one boot per run", l.conf.BootKind)
	case l.r.Plan.BootFailures > 0 && l.crashes[b.Kernel] >= l.r.Plan.BootFailures:
		return fmt.Sprintf("kernel %s failed %d times here, first: %s", b.Kernel, l.crashes[b.Kernel], l.crash[b.Kernel])
	}
	return ""
}

func (l *lane) onlyOnce() bool { return targets.TraitsOf(l.target.Boot).OnlyOnce }

// firstWords shortens a cause that is repeated for many trials; it stands whole
// in the lane's own record.
func firstWords(s string) string {
	const most = 120 // characters: a line or two
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// boot takes a planned boot to its end: as many real boots as it needs within
// the target's patience, until every trial has an outcome.
func (l *lane) boot(ctx context.Context, b plan.Boot) {
	if why, ok := l.concluded(b); ok {
		l.conclude(ctx, b.Trials, results.BootFailed, why)
		l.recover(ctx, l.knownGood(), fmt.Sprintf("a boot of kernel %s that failed before the controller stopped", b.Kernel))
		return
	}
	again := l.under(b)
	todo := l.takeOver(ctx, b)
	tries := 0
	for len(todo) > 0 && ctx.Err() == nil {
		l.heed()
		if why := l.skipReason(b, again); why != "" {
			l.conclude(ctx, todo, results.Skipped, why)
			return
		}
		if l.idle(ctx, b.Block, l.costs.Boot(b), b.Kernel); !l.bootable(ctx, b, todo) {
			return
		}
		took := l.r.night.stopwatch()
		s, begun, by, err := l.tryBoot(ctx, b)
		var crash *targets.BootError
		switch {
		case !begun && (by != "" || err == nil || errors.Is(err, errHalted)):
			continue // a person was faster
		case err == nil && again && l.verified && l.onlyOnce() && s.record.BootID != l.lastID:
			// The lost link was a reboot; trials of two boots are not one sample.
			l.conclude(ctx, todo, results.Skipped, fmt.Sprintf("the target rebooted by itself, and boot method %q gives one boot per run", l.conf.BootKind))
			return
		case err == nil:
			l.lastID, l.verified = s.record.BootID, true
			l.costs.SawBoot(b.Kernel, took())
			l.payBack(ctx) // what a controller set that died, in a boot that goes on
			todo = s.trials(ctx, todo)
		case by != "" && !errors.As(err, &crash):
			l.abandoned(ctx, b, by)
		case ctx.Err() != nil:
			return
		case errors.As(err, &crash):
			l.didNotBoot(ctx, b, todo, crash)
			l.costs.SawFailure(b.Kernel, took())
			return
		default:
			l.failed(ctx, err)
			if ctx.Err() != nil {
				return // the controller's own failure
			}
			l.recover(ctx, l.knownGood(), fmt.Sprintf("boot %d (kernel %s)", l.boots, b.Kernel))
			tries++
			if why, over := l.despair(err, tries); over && l.withdrawn == "" {
				l.conclude(ctx, todo, results.Lost, why)
				return
			}
			l.pause(ctx, b.Kernel)
		}
		again = true
	}
}

// takeOver goes on with the boot that the controller before this one left its target
// in, if it is b's, and returns what is left to be done.
func (l *lane) takeOver(ctx context.Context, b plan.Boot) (todo []results.Slot) {
	todo = b.Trials
	if s := l.adopt(ctx, b); s != nil {
		todo = s.resumed(ctx, todo)
		l.settle()
		todo = s.trials(ctx, todo)
	}
	l.settle()
	return todo
}

// didNotBoot is the verdict on a kernel, and the way back from it.
func (l *lane) didNotBoot(ctx context.Context, b plan.Boot, todo []results.Slot, crash *targets.BootError) {
	why := crash.Stage + ": " + crash.Err.Error()
	l.crashed(b.Kernel, why)
	l.fallen(l.boots, b.Kernel)
	l.conclude(ctx, todo, results.BootFailed, why)
	l.recover(ctx, l.knownGood(), fmt.Sprintf("boot %d (kernel %s: %s)", l.boots, b.Kernel, crash.Stage))
}

// conclude gives an outcome to trials that did not run.
func (l *lane) conclude(ctx context.Context, slots []results.Slot, o results.Outcome, why string) {
	for i := range slots {
		l.attempts[slots[i].Key()]++
		l.record(ctx, results.Record{Kind: results.KindJudged, Slot: &slots[i], Attempt: l.attempts[slots[i].Key()], Outcome: o, Reason: why})
	}
}

// record appends to the journal; an error there stops the whole run by itself.
func (l *lane) record(ctx context.Context, rec results.Record) {
	rec.Lane = l.conf.Name
	_ = l.r.append(ctx, rec)
}

func (l *lane) note(ctx context.Context) func(string) {
	return func(s string) { l.record(ctx, results.Record{Kind: results.KindNote, Note: s}) }
}
