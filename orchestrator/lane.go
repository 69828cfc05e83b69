package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// cleanupTime bounds what a lane does after its last trial or after Ctrl-C.
const cleanupTime = 25 * time.Second

// lane executes the boots of one target, one after another.
type lane struct {
	r      *Runner
	plan   *plan.Lane
	conf   *config.Target
	target *targets.Target // a copy: drivers may fill in host and port
	log    *zap.Logger

	boots     int                     // numbered so far
	attempts  map[results.SlotKey]int // made so far
	crashes   map[string]int          // kernel -> failures to boot, or panics
	crash     map[string]string       // kernel -> first cause
	infra     int                     // infrastructure failures in a row
	lastID    string                  // boot_id of the boot before
	verified  bool                    // a boot counted in this session
	pushed    *deploy.Agent           // what to remove at the end; nil: nothing
	withdrawn string                  // first cause, once the target is given up
}

func (r *Runner) newLane(p *plan.Lane) (*lane, error) {
	conf := r.Lab.Target(p.Target)
	if conf == nil {
		return nil, fmt.Errorf("target %s is in the plan but not in the configuration", p.Target)
	}
	t := conf.Target
	t.Dial, t.Serve = r.Dial, r.Serve
	return &lane{r: r, plan: p, conf: conf, target: &t, log: r.Log.With(zap.String("target", p.Target)),
		boots: r.Run.NextBoot(p.Target, r.Before) - 1, attempts: attemptsBefore(r.Before, p.Target),
		crashes: map[string]int{}, crash: map[string]string{}}, nil
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
	l.record(ctx, results.Record{Kind: results.KindLane, Note: results.NoteBegan})
	last := results.Record{Kind: results.KindLane, Note: results.NoteEnded}
	for _, b := range l.plan.Boots {
		switch why := l.skipReason(b, false); {
		case ctx.Err() != nil:
		case why != "":
			l.conclude(ctx, b.Trials, results.Skipped, why)
		default:
			l.boot(ctx, b)
		}
	}
	if ctx.Err() != nil {
		last.Note = results.NoteInterrupted
	}
	if l.withdrawn != "" {
		last.Note, last.Reason = results.NoteQuarantined, l.withdrawn
	}
	l.leave(ctx)
	l.record(ctx, last)
}

// skipReason says why a boot is not even tried, "" when it is. again: it was
// tried before, and trials of it are left.
func (l *lane) skipReason(b plan.Boot, again bool) string {
	switch {
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
	todo := b.Trials
	for again := false; len(todo) > 0 && ctx.Err() == nil; again = true {
		if why := l.skipReason(b, again); why != "" {
			l.conclude(ctx, todo, results.Skipped, why)
			return
		}
		s, err := l.start(ctx, b)
		var crash *targets.BootError
		switch {
		case err == nil && again && l.verified && l.onlyOnce() && s.record.BootID != l.lastID:
			// The lost link was a reboot; trials of two boots are not one sample.
			l.conclude(ctx, todo, results.Skipped, fmt.Sprintf("the target rebooted by itself, and boot method %q gives one boot per run", l.conf.BootKind))
			return
		case err == nil:
			l.lastID, l.verified = s.record.BootID, true
			todo = s.trials(ctx, todo)
		case ctx.Err() != nil:
			return
		case errors.As(err, &crash):
			l.crashed(b.Kernel, crash.Stage+": "+crash.Err.Error())
			l.conclude(ctx, todo, results.BootFailed, crash.Stage+": "+crash.Err.Error())
			l.recover(ctx)
			return
		default:
			l.failed(ctx, err)
			l.recover(ctx)
			l.pause(ctx)
		}
	}
}

// crashed counts a kernel's failure.
func (l *lane) crashed(kernel, why string) {
	l.crashes[kernel]++
	if l.crash[kernel] == "" {
		l.crash[kernel] = why
	}
}

// failed counts an infrastructure failure and withdraws the target when there
// were too many in a row.
func (l *lane) failed(ctx context.Context, err error) {
	l.infra++
	l.log.Warn("infrastructure failure", zap.Int("in_a_row", l.infra), zap.Error(err))
	l.record(ctx, results.Record{Kind: results.KindNote, Note: fmt.Sprintf("infrastructure failure %d of %d: %v", l.infra, l.conf.Quarantine, err)})
	if l.infra >= l.conf.Quarantine {
		l.withdrawn = err.Error()
	}
}

// pause gives whatever failed time to come back: a switch, a PDU, an SSH server.
func (l *lane) pause(ctx context.Context) {
	if l.withdrawn != "" || l.r.Pause <= 0 {
		return
	}
	t := time.NewTimer(l.r.Pause << (l.infra - 1))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// recover brings a target back after a failure, by power and the known-good
// kernel where there are such. A guest needs neither: its next boot is a new one.
func (l *lane) recover(ctx context.Context) {
	if targets.TraitsOf(l.target.Boot).Local || ctx.Err() != nil {
		return
	}
	if l.target.Held != nil {
		_ = l.target.Held.Close()
		l.target.Held = nil
	}
	if l.target.Power != nil {
		if err := l.cycle(ctx); err != nil {
			l.failed(ctx, fmt.Errorf("power cycle: %w", err))
			return
		}
	}
	if l.conf.KnownGood == "" {
		return
	}
	k, _ := l.r.Lab.Kernel(l.conf.KnownGood).For(l.conf)
	conn, _, err := targets.Boot(ctx, l.target, k, targets.BootLog{Note: l.note(ctx)})
	if err != nil {
		l.failed(ctx, fmt.Errorf("back to the known-good kernel %s: %w", k.Name, err))
		return
	}
	l.target.Held = conn
	l.record(ctx, results.Record{Kind: results.KindNote, Note: "back on the known-good kernel " + k.Name})
}

// cycle switches the target off and on.
func (l *lane) cycle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := l.target.Power.Set(ctx, false); err != nil {
		return fmt.Errorf("off: %w", err)
	}
	if err := l.target.Power.Set(ctx, true); err != nil {
		return fmt.Errorf("on: %w", err)
	}
	return nil
}

// leave ends a lane: the target back on its known-good kernel, nothing of ours
// left there, drivers closed. It also runs after Ctrl-C.
func (l *lane) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.leaveTime())
	defer cancel()
	if err := l.clean(ctx); err != nil {
		l.note(ctx)("the agent's files could not be removed: " + err.Error())
	}
	if l.conf.KnownGood != "" && l.lastID != "" && l.withdrawn == "" && !targets.TraitsOf(l.target.Boot).Local {
		k, _ := l.r.Lab.Kernel(l.conf.KnownGood).For(l.conf)
		conn, _, err := targets.Boot(ctx, l.target, k, targets.BootLog{Note: l.note(ctx), Known: l.lastID})
		if err != nil {
			l.record(ctx, results.Record{Kind: results.KindNote, Note: fmt.Sprintf("left on another kernel than the known-good %s: %v", k.Name, err)})
		} else {
			l.target.Held = conn
		}
	}
	if l.target.Held != nil {
		_ = l.target.Held.Close()
		l.target.Held = nil
	}
	l.target.StopConsole()
	for _, d := range []any{l.target.Boot, l.target.Power, l.target.Console} {
		if c, ok := d.(targets.Closer); ok {
			if err := c.Close(); err != nil {
				l.log.Warn("driver did not close", zap.Error(err))
			}
		}
	}
}

// clean removes the agent's files, over a new connection where the last one was
// given up. A guest that is gone took them along.
func (l *lane) clean(ctx context.Context) error {
	if l.pushed == nil || l.target.Held == nil && targets.TraitsOf(l.target.Boot).Local {
		return nil
	}
	if l.target.Held == nil {
		ctx, cancel := context.WithTimeout(ctx, cleanupTime/2)
		defer cancel()
		conn, err := l.target.Dial(ctx, l.target.SSH, targets.DialOptions{Note: l.note(ctx)})
		if err != nil {
			return err
		}
		l.target.Held = conn
	}
	l.pushed.Through(l.target.Held)
	return l.pushed.Remove(ctx)
}

// leaveTime is longer where a real machine has to boot its known-good kernel.
func (l *lane) leaveTime() time.Duration {
	if l.conf.KnownGood != "" && !targets.TraitsOf(l.target.Boot).Local {
		return cleanupTime + 5*time.Minute
	}
	return cleanupTime
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
