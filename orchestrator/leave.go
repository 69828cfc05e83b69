package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// cleanupTime bounds what a lane does after its last trial or after Ctrl-C,
// beside bringing a real target home. After Ctrl-C it is less, see leaveBudget.
const cleanupTime = 25 * time.Second

// leave ends a lane: nothing of ours left on the target, its knobs restored, the
// target on its known-good kernel, drivers closed. It also runs after Ctrl-C.
func (l *lane) leave(ctx context.Context) {
	err := l.clean(ctx)
	if l.stranded {
		l.note(ctx)(leftWhere(l.conf.KnownGood) + ": nothing brought the target back")
	}
	if l.touched && !l.stranded && !targets.TraitsOf(l.target.Boot).Local && !l.isHome(ctx) {
		k := l.knownGood()
		if e := l.goHome(ctx, k); e != nil {
			l.note(ctx)(leftWhere(k.Name) + ": " + e.Error())
		} else if err != nil {
			err = l.clean(targets.WithoutBudget(ctx))
		}
	}
	if err != nil {
		l.note(ctx)("what kernsweep put on the target could not be removed: " + err.Error())
	}
	l.clearLegacy(ctx)
	if l.target.Held != nil {
		_ = l.target.Held.Close()
		l.target.Held = nil
	}
	l.closeConsole(l.note(ctx))
	for _, d := range []any{l.target.Boot, l.target.Power, l.target.Console} {
		if c, ok := d.(targets.Closer); ok {
			if err := c.Close(); err != nil {
				l.log.Warn("driver did not close", zap.Error(err))
			}
		}
	}
}

// clearLegacy removes what the controller before this one left on the target, in
// a lane that had nothing to measure any more and so put no agent there itself.
func (l *lane) clearLegacy(ctx context.Context) {
	if l.before == nil || !l.before.open || l.pushed != nil || l.robbed(ctx) != nil ||
		l.stranded || targets.TraitsOf(l.target.Boot).Local {
		return
	}
	l.settle()
	ctx, cancel := targets.Afterwards(ctx, cleanupTime)
	defer cancel()
	err := l.reach(ctx)
	if err == nil {
		err = deploy.EndLeftovers(ctx, l.target.Held, deploy.Options{Bare: true, Spare: l.r.spare(), Log: l.log, Note: l.note(ctx)})
	}
	if err != nil {
		l.note(ctx)("what the controller before put on the target could not be looked for: " + err.Error())
	}
}

func leftWhere(knownGood string) string {
	if knownGood == "" {
		return "NOT left in a state that answers"
	}
	return "NOT left on the known-good kernel " + knownGood
}

// isHome says that the boot that is held is one of the known-good kernel, proven
// in this lane.
func (l *lane) isHome(ctx context.Context) bool {
	if l.conf.KnownGood == "" || l.at != l.conf.KnownGood || l.target.Held == nil {
		return false
	}
	ctx, stop := targets.Afterwards(ctx, l.target.Timeout.WithDefaults().Exec)
	defer stop()
	id, err := targets.ReadBootID(ctx, l.target.Held)
	return err == nil && id == l.lastID
}

// clean restores what knobs are still to be restored and removes the agent's
// files. A guest that is gone took them along.
func (l *lane) clean(ctx context.Context) error {
	if l.pushed == nil && len(l.owed) == 0 || l.target.Held == nil && targets.TraitsOf(l.target.Boot).Local {
		return nil
	}
	ctx, cancel := targets.Afterwards(ctx, cleanupTime)
	defer cancel()
	if err := l.reach(ctx); err != nil {
		return err
	}
	l.payBack(ctx)
	if l.pushed == nil {
		return nil
	}
	l.pushed.Through(l.target.Held)
	return l.pushed.Remove(ctx)
}

// reach makes sure that the held link works, over a new one if it does not; a
// switch that is restarting gets a second and a third chance.
func (l *lane) reach(ctx context.Context) error {
	var err error
	for try := range 3 {
		if try > 0 {
			t := time.NewTimer(3 * time.Second)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				return err
			}
		}
		if l.target.Held == nil {
			dctx, stop := context.WithTimeout(ctx, cleanupTime/4)
			l.target.Held, err = l.target.Dial(dctx, l.target.SSH, targets.DialOptions{Note: l.note(ctx)})
			stop()
			if err != nil {
				l.target.Held = nil
				continue
			}
		}
		rctx, stop := context.WithTimeout(ctx, cleanupTime/4)
		_, err = targets.ReadBootID(rctx, l.target.Held)
		stop()
		if err == nil {
			return nil
		}
		_ = l.target.Held.Close() // it is dead
		l.target.Held = nil
	}
	return err
}

// leaveTime is longer where a real machine has to boot its known-good kernel,
// by the strongest means if need be.
func (l *lane) leaveTime() time.Duration {
	if targets.TraitsOf(l.target.Boot).Local {
		return cleanupTime
	}
	t := l.target.Timeout.WithDefaults()
	return 2*cleanupTime + t.Down + 3*t.Boot + 2*time.Minute
}

// owing is a knob that could not be restored while its link was lost.
type owing struct {
	knob targets.Knob
	boot string // boot_id: a reboot resets it
}

// payBack restores the knobs that are owed, once the same boot is reached again.
func (l *lane) payBack(ctx context.Context) {
	if len(l.owed) == 0 {
		return
	}
	id, err := targets.ReadBootID(ctx, l.target.Held)
	if err != nil {
		return // they stay owed
	}
	var still []owing
	for _, o := range slices.Backward(l.owed) {
		if o.boot != id {
			continue // a boot resets it
		}
		if err := o.knob.Restore(ctx, l.target.Held); err != nil {
			l.note(ctx)(fmt.Sprintf("knob %s is not restored to %s: %v", o.knob.Path, o.knob.Old, err))
			still = append(still, o)
		} else {
			l.note(ctx)(fmt.Sprintf("knob %s is restored to %s", o.knob.Path, o.knob.Old))
			l.restored(ctx, o)
		}
	}
	slices.Reverse(still)
	l.owed = still
}

// restored makes durable that a knob is not owed any more.
func (l *lane) restored(ctx context.Context, o owing) {
	l.record(ctx, results.Record{Kind: results.KindKnob, Knob: &results.KnobChange{Knob: o.knob, BootID: o.boot, Restored: true}})
}
