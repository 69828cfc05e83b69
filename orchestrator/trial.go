package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// trials runs the slots of a boot in order and returns those still to be done
// in another boot.
func (s *session) trials(ctx context.Context, todo []results.Slot) []results.Slot {
	for goesOn := true; len(todo) > 0; {
		before := len(todo)
		if todo, goesOn = s.heeded(ctx, todo); !goesOn {
			return todo
		} else if len(todo) < before {
			continue
		}
		if ctx.Err() != nil || !s.runnable(ctx, todo) {
			return todo
		}
		slot := todo[0]
		slot.Boot = s.number
		within, end, ok := s.helm.begin(ctx, stretchOf(slot))
		if !ok {
			continue
		}
		took := s.r.night.stopwatch()
		o, why := s.trial(within, slot)
		end()
		switch o {
		case notBegun:
		case results.Interrupted:
			return todo
		case results.Skipped:
			if todo = todo[1:]; !s.steadied(ctx, "a trial that was skipped") {
				return todo
			}
		case results.BootFailed:
			s.crashed(s.kernel, why)
			s.fallen(s.number, s.kernel)
			s.recover(ctx, s.knownGood(), fmt.Sprintf("boot %d (kernel %s: %s)", s.number, s.kernel, firstWords(why)))
			return todo[1:]
		case results.Lost:
			s.r.doubtPeer()
			s.failed(ctx, fmt.Errorf("%s: %s", slot.Cell, why))
			if s.lost[slot.Key()]++; s.lost[slot.Key()] > s.conf.Failures.Retries {
				todo = todo[1:]
			}
			if s.withdrawn != "" {
				return todo
			}
			s.pause(ctx, s.kernel)
			if !s.back(ctx) {
				s.recover(ctx, targets.Kernel{}, "a lost link") // its kernel did nothing wrong
				return todo
			}
		default:
			s.infra, s.cause = 0, ""
			s.costs.SawTrial(slot.Cell, took())
			todo = todo[1:]
		}
	}
	return nil
}

// back says whether the same boot can be reached again.
func (s *session) back(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := s.redial(ctx); err != nil {
		s.note(ctx)("the boot cannot be reached again, booting anew: " + err.Error())
		return false
	}
	s.payBack(ctx)
	return s.deploy(ctx) == nil
}

// scenario finds a cell's workload in the configuration.
func scenario(lab *config.Lab, c results.Cell) *config.Scenario {
	w := lab.Workload(c.Workload)
	if w == nil {
		return nil
	}
	i := slices.IndexFunc(w.Scenarios, func(x config.Scenario) bool { return x.Name == c.Scenario })
	if i < 0 {
		return nil
	}
	return &w.Scenarios[i]
}

// notBegun is the outcome of a trial that waited for others when its lane was
// paused. It is in no record.
const notBegun results.Outcome = ""

// trial runs one slot and writes down what became of it.
func (s *session) trial(ctx context.Context, slot results.Slot) (results.Outcome, string) {
	// A controller that stopped at the wrong moment leaves a folder and no record.
	attempt := max(s.attempts[slot.Key()]+1, s.r.Run.NextAttempt(slot, s.r.Before))
	numbered := s.attempts[slot.Key()]
	s.attempts[slot.Key()] = attempt
	t := &trial{session: s, slot: slot, attempt: attempt, scenario: scenario(s.r.Lab, slot.Cell), began: time.Now()}
	rec := func(k results.Kind) results.Record {
		return results.Record{Kind: k, Slot: &t.slot, Attempt: attempt}
	}
	if t.scenario == nil {
		r := rec(results.KindJudged)
		r.Outcome, r.Reason = results.Skipped, "no longer in the configuration"
		s.lane.record(ctx, r)
		return r.Outcome, r.Reason
	}
	release, err := s.turn(ctx, slot.Cell, t.lockNames())
	if err == nil && !s.helm.started() {
		release()
		err = errHalted
	}
	switch {
	case errors.Is(err, errHalted):
		s.attempts[slot.Key()] = numbered
		return notBegun, ""
	case err != nil && byHand(ctx) != "":
		r := rec(results.KindJudged)
		r.Outcome, r.Reason = results.Skipped, byHand(ctx)
		s.lane.record(ctx, r)
		return r.Outcome, r.Reason
	case err != nil:
		return results.Interrupted, err.Error()
	}
	defer release()
	if t.dir, err = s.r.Run.NewTrialDir(slot, attempt); err != nil {
		if e := s.r.disk(err); e != nil {
			return results.Interrupted, e.Error()
		}
		return results.Lost, err.Error()
	}
	s.lane.record(ctx, rec(results.KindStarted))
	judged := t.finish(ctx, t.run(ctx))
	return judged.Outcome, judged.Reason
}

// finish takes a trial that ended with runErr to its verdict.
func (t *trial) finish(ctx context.Context, runErr error) results.Record {
	t.end(ctx, runErr)
	judged := results.Record{Kind: results.KindJudged, Slot: &t.slot, Attempt: t.attempt}
	t.judge(ctx, runErr, &judged)
	t.pardon(ctx, &judged)
	if err := settleFiles(t.dir); err != nil {
		if e := t.r.disk(err); e != nil {
			judged.Outcome, judged.Reason = results.Interrupted, e.Error()
		} else {
			t.note(ctx)("the files of " + t.slot.Cell.String() + " may not outlive a power cut: " + err.Error())
		}
	}
	if err := t.r.locks.broken(context.WithoutCancel(ctx), t.lockNames()...); err != nil && judged.Outcome == results.OK {
		judged.Outcome, judged.Reason = results.Invalid, "it was not alone any more: "+err.Error()
	}
	t.lane.record(ctx, judged)
	t.writeJSON(ctx, judged)
	return judged
}

// trial is one attempt of one slot.
type trial struct {
	*session
	slot     results.Slot
	attempt  int
	scenario *config.Scenario
	dir      string
	began    time.Time
	before   targets.KernelLog // and the console's place, before the workload
	mark     int
	ended    bool           // the ended record is written …
	how      results.Record // … and this is it
	notes    []string
	drifted  []string       // knobs that did not stay as they were set
	resumed  []results.Task // what its agents had begun under the controller before
}

// lockNames are what nobody else may use meanwhile.
func (t *trial) lockNames() []string {
	names := []string{targetLock(t.conf.Name)}
	for _, u := range t.conf.Uses {
		names = append(names, "uses:"+u)
	}
	if t.scenario.Run.Needs().Peer {
		if p := t.peerTarget(); p != "" {
			names = append(names, targetLock(p))
		} else {
			names = append(names, "peer:controller")
		}
	}
	return names
}

// peerTarget is the name of the peer when it is a target, "" for the controller.
func (t *trial) peerTarget() string {
	if p := t.scenario.Common.Peer; p != "controller" {
		return strings.TrimPrefix(p, "target.")
	}
	return ""
}

// deadline of the trial, from its start.
func (t *trial) deadline() time.Duration {
	if d := t.scenario.Common.Deadline; d > 0 {
		return d
	}
	d := 3*t.scenario.Run.Estimate() + time.Minute
	if targets.TraitsOf(t.target.Boot).Emulated {
		d *= 2 // the guest's seconds are longer than ours
	}
	return d
}

// run prepares, sets the knobs, runs the workload and restores the knobs. Its
// error is what ended the trial early.
func (t *trial) run(ctx context.Context) error {
	deadline := t.deadline()
	env, done, err := t.env(ctx, deadline)
	if err != nil {
		return err
	}
	defer done()
	if err := t.prepare(ctx, env, deadline); err != nil {
		return err
	}
	check, stop := t.short(ctx)
	defer stop()
	if err := targets.Recheck(check, t.target.Held, t.record); err != nil {
		return err
	}
	if t.before, err = targets.ReadKernelLog(check, t.target.Held); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.dir, markFile), t.before.Mark(), 0o666); err != nil {
		return err
	}
	t.mark = t.target.ConsoleMark()
	restore, err := t.setKnobs(check)
	defer restore()
	if err != nil {
		return err
	}
	env.Ended = func(how string) { t.writeEnded(ctx, how) }
	// The agent ends the task at the deadline; the margin is for its last words.
	run, cancel := context.WithTimeout(ctx, deadline+2*time.Minute)
	defer cancel()
	err = t.scenario.Run.Run(run, env)
	if err != nil && ctx.Err() == nil && errors.Is(run.Err(), context.DeadlineExceeded) {
		return &workloads.FailedError{Reason: fmt.Sprintf("not over %s after its deadline of %s: %v", 2*time.Minute, deadline, err)}
	}
	return err
}

// short bounds the few small commands before or after a workload.
func (t *trial) short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*t.target.Timeout.WithDefaults().Exec)
}

// prepare does a workload's work of once per boot, the first time it is met, in
// no more time than a trial has.
func (t *trial) prepare(ctx context.Context, env *workloads.Env, deadline time.Duration) error {
	p, ok := t.scenario.Run.(workloads.Preparer)
	if !ok {
		return nil
	}
	id := t.slot.Workload + "." + t.slot.Scenario
	if err, seen := t.ready[id]; seen {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline+2*time.Minute)
	defer cancel()
	err := p.Prepare(ctx, env)
	if err == nil || !isLink(err) {
		t.ready[id] = err
	}
	return err
}

// setKnobs sets what the scenario asks for. restore is never nil.
func (t *trial) setKnobs(ctx context.Context) (restore func(), err error) {
	var set []targets.Knob
	restore = func() {
		ctx, cancel := targets.Afterwards(ctx, cleanupTime/2)
		defer cancel()
		if t.r.Leases.check(ctx, t.conf.Name) != nil {
			return // the target is somebody else's now
		}
		for _, k := range slices.Backward(set) {
			t.drifted = append(t.drifted, k.Drifted(ctx, t.target.Held)...)
			if err := k.Restore(ctx, t.target.Held); err != nil {
				t.note(ctx)(fmt.Sprintf("knob %s is not restored to %s yet: %v", k.Path, k.Old, err))
				t.owed = append(t.owed, owing{k, t.record.BootID})
				continue
			}
			t.restored(ctx, owing{k, t.record.BootID})
		}
	}
	add := func(k targets.Knob, err error) error {
		if err == nil {
			set = append(set, k)
			t.lane.record(ctx, results.Record{Kind: results.KindKnob, Knob: &results.KnobChange{Knob: k, BootID: t.record.BootID}})
			for _, one := range append([]targets.Knob{k}, k.Also...) {
				t.notes = append(t.notes, fmt.Sprintf("%s = %s (was %s)", one.Path, one.Got, one.Old))
			}
		}
		var un *targets.UnavailableError
		if errors.As(err, &un) {
			return &workloads.UnavailableError{Reason: un.Reason}
		}
		return err
	}
	if d := t.scenario.Common.Timeslice; d > 0 {
		if err := add(targets.SetTimeslice(ctx, t.target.Held, t.record.Scheduler, d)); err != nil {
			return restore, err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(t.scenario.Common.Knobs)) {
		if err := add(targets.SetKnob(ctx, t.target.Held, path, t.scenario.Common.Knobs[path])); err != nil {
			return restore, err
		}
	}
	return restore, nil
}
