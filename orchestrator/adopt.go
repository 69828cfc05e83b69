package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads/deploy"
)

// markFile has the kernel log's mark of an attempt, for a resumed verdict.
const markFile = "kernel-mark.txt"

// isOf says that a boot was made for b.
func isOf(made *results.Boot, b plan.Boot) bool {
	return made.Kernel == b.Kernel && made.Block == b.Block
}

// under says that b is what runs on a target that has one boot per run, and was
// under way when the run was interrupted. Its trials go on when it is reached and
// still is that boot.
func (l *lane) under(b plan.Boot) bool {
	return l.onlyOnce() && l.before != nil && l.before.newest != nil && isOf(l.before.newest, b)
}

// adopt takes over the boot that the controller before this one left its target
// in, when it is the boot that b asks for and is still the one that was proven.
// nil: b is to be booted.
func (l *lane) adopt(ctx context.Context, b plan.Boot) *session {
	h := l.before
	if h == nil || h.boot == nil || !isOf(h.boot, b) || targets.TraitsOf(l.target.Boot).Local {
		return nil
	}
	boot := *h.boot
	h.boot = nil // whatever comes of it, it is asked once
	for _, k := range h.knobs {
		if k.BootID == boot.Record.BootID {
			l.owed = append(l.owed, owing{k.Knob, k.BootID})
		}
	}
	release, err := l.hold(ctx)
	if err != nil {
		return nil
	}
	defer release()
	s := &session{lane: l, number: boot.Number, kernel: boot.Kernel, record: boot.Record,
		dir: l.r.Run.BootDir(l.conf.Name, boot.Number), ready: map[string]error{}}
	no := func(why string) *session {
		l.note(ctx)(fmt.Sprintf("boot %d (kernel %s) is not resumed: %s; booting anew", boot.Number, boot.Kernel, why))
		return nil
	}
	if why := l.unsafe(boot.Number); why != "" {
		return no(why)
	}
	dial, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	if _, err := s.redial(dial); err != nil {
		return no(err.Error())
	}
	l.at = boot.Kernel
	s.rejoin(ctx)
	if err := s.deploy(ctx); err != nil {
		return no(err.Error())
	}
	l.note(ctx)(fmt.Sprintf("boot %d (kernel %s, boot_id %s) goes on: the target is still in it", boot.Number, boot.Kernel, boot.Record.BootID))
	return s
}

// unsafe says why a boot must not be gone on with: a trial was about to set knobs
// when the controller stopped, so what they were before is not known.
func (l *lane) unsafe(boot int) string {
	for _, t := range l.r.Before.Trials {
		for _, a := range t.Attempts {
			if a.Slot.Target != l.conf.Name || a.Slot.Boot != boot || a.Judged() || len(a.Tasks) > 0 {
				continue
			}
			if c := scenario(l.r.Lab, t.Slot.Cell); c != nil && (c.Common.Timeslice > 0 || len(c.Common.Knobs) > 0) {
				return fmt.Sprintf("the controller stopped while %s set its knobs", t.Slot.Cell)
			}
		}
	}
	return ""
}

// rejoin opens the console of an adopted boot again.
func (s *session) rejoin(ctx context.Context) {
	c, err := s.openConsole(s.note(ctx))
	if err == nil {
		k, _ := s.r.Lab.Kernel(s.kernel).For(s.conf)
		err = s.target.RejoinConsole(ctx, k, targets.BootLog{Note: s.note(ctx), Console: c})
	}
	switch {
	case err != nil:
		s.note(ctx)("the console of the resumed boot is not watched: " + err.Error())
	case s.target.Console != nil:
		s.note(ctx)("the console was not watched while no controller ran")
	}
}

// resumed ends the attempts that were open when the controller stopped, and
// returns what is still to do in this boot.
func (s *session) resumed(ctx context.Context, todo []results.Slot) []results.Slot {
	over := map[results.SlotKey]bool{}
	for _, slot := range todo {
		t := s.r.Before.Slot(slot)
		if t == nil {
			continue
		}
		for _, a := range t.Attempts {
			if a.Slot.Boot == s.number && !a.Judged() && a.Number > 0 && ctx.Err() == nil {
				over[slot.Key()] = s.reattach(ctx, t, a)
			}
		}
		if v := t.Valid(); slot.Warmup() && v != nil && v.Slot.Boot == s.number {
			over[slot.Key()] = true // the boot is warm
		}
	}
	s.payBack(ctx)
	return slices.DeleteFunc(slices.Clone(todo), func(slot results.Slot) bool { return over[slot.Key()] })
}

// reattach takes an attempt to its verdict whose agent finished, or still runs,
// and says whether it has one. What cannot be had any more is interrupted, and
// to be repeated as a new attempt.
func (s *session) reattach(ctx context.Context, of *results.Trial, a *results.Attempt) bool {
	t := &trial{session: s, slot: a.Slot, attempt: a.Number, scenario: scenario(s.r.Lab, of.Slot.Cell), began: a.Started,
		dir: s.r.Run.TrialDir(a.Slot, a.Number), resumed: a.Tasks}
	t.slot.Block = of.Slot.Block
	if t.scenario == nil {
		return false
	}
	release, err := s.r.locks.acquire(ctx, t.lockNames()...)
	if err != nil {
		return false
	}
	defer release()
	within, end := s.helm.resume(ctx, stretchOf(t.slot))
	defer end()
	err = t.rejoin(within, a)
	if gone := unattachable(err); gone != "" {
		s.lane.record(ctx, results.Record{Kind: results.KindJudged, Slot: &t.slot, Attempt: a.Number, Outcome: results.Interrupted,
			Reason: "the controller stopped, and what the agent measured cannot be had: " + gone})
		return false
	}
	t.notes = append(t.notes, "resumed: a new controller took this trial over from the agent; the console was not watched in between")
	judged := t.finish(within, err)
	return judged.Outcome != results.Interrupted && judged.Outcome != results.Lost
}

// rejoin runs the workload's own code over agents that begin nothing: they bring
// what was begun. Its error is like run's.
func (t *trial) rejoin(ctx context.Context, a *results.Attempt) error {
	if len(a.Tasks) == 0 {
		return deploy.ErrNotBegun
	}
	if !a.Ended.IsZero() {
		t.ended, t.how = true, results.Record{Outcome: a.Outcome, Reason: a.Reason, Note: a.How}
	}
	mark, err := os.ReadFile(filepath.Join(t.dir, markFile))
	if err != nil {
		mark = nil // ParseMark says that it is missing
	}
	t.before, t.mark = targets.ParseMark(mark), t.target.ConsoleMark()
	deadline := t.deadline()
	env, done, err := t.env(ctx, deadline)
	if err != nil {
		return err
	}
	defer done()
	env.Ended = func(how string) { t.writeEnded(ctx, how) }
	run, cancel := context.WithTimeout(ctx, deadline+2*time.Minute)
	defer cancel()
	return t.scenario.Run.Run(run, env)
}

// unattachable says why an attempt is to be repeated, "" when err is a verdict's
// business.
func unattachable(err error) string {
	var gone *deploy.GoneError
	if errors.Is(err, deploy.ErrNotBegun) || errors.As(err, &gone) {
		return err.Error()
	}
	return ""
}
