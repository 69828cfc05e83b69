package main

import (
	"context"
	"fmt"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/qemu"
	"kernsweep/targets/sshconn"
)

// reachNow is a target by hand, real or virtual: a virtual one is there while a run
// or `kernsweep boot` of this user runs it.
func (a *app) reachNow(ctx context.Context, t *config.Target) (targets.Conn, error) {
	return a.reachBy(ctx, sshconn.New(a.logger()), t)
}

// reachBy is reachNow by a Dialer that serves several targets.
func (a *app) reachBy(ctx context.Context, d *sshconn.Dialer, t *config.Target) (targets.Conn, error) {
	s := t.SSH
	if targets.TraitsOf(t.Boot).Local {
		var err error
		if s, err = a.guestOf(ctx, t); err != nil {
			return nil, err
		}
	}
	conn, err := d.Dial(ctx, s, targets.DialOptions{Note: func(s string) { fmt.Fprintln(a.err, live.Safe(s)) }})
	if err != nil {
		return nil, &statusError{exitInfra, fmt.Errorf("target %s: %w", t.Name, err)}
	}
	return conn, nil
}

// guestOf is the way to a virtual target that runs now: that of a run in our folder
// before any other of its name.
func (a *app) guestOf(ctx context.Context, t *config.Target) (targets.SSH, error) {
	m, ok := t.Boot.(*qemu.Machine)
	if !ok {
		return targets.SSH{}, usage(fmt.Errorf("%s is virtual, and cannot be found by another process", t.Name))
	}
	found, err := qemu.Find(ctx, t.Name)
	if err != nil {
		return targets.SSH{}, &statusError{exitInfra, err}
	}
	if len(found) > 1 {
		runs := a.controllers()
		for _, g := range found {
			if runs[g.Controller] != nil {
				found = []qemu.Guest{g}
				break
			}
		}
	}
	switch len(found) {
	case 0:
		return targets.SSH{}, usage(fmt.Errorf("%s is virtual, and nobody of your login runs it now: it exists while a run or `%s boot %s KERNEL` runs it; leave that open in another terminal",
			t.Name, a.kernsweep(), t.Name))
	case 1:
		return m.Join(found[0], &t.Target)
	}
	var by []string
	for _, g := range found {
		by = append(by, fmt.Sprint(g.Controller))
	}
	return targets.SSH{}, usage(fmt.Errorf("%s runs %d times now, by the processes %s: end all but one, or name the run's folder with --runs",
		t.Name, len(found), strings.Join(by, ", ")))
}

// controllers are the runs that processes of this machine execute, by their number.
func (a *app) controllers() map[int]*results.Run {
	names, err := results.List(a.runs)
	if err != nil {
		return nil
	}
	runs := map[int]*results.Run{}
	for _, n := range names {
		r, err := results.Find(a.runs, n)
		if err != nil {
			continue
		}
		if h, held := r.HeldBy(); held && h.Here() {
			runs[h.PID] = r
		}
	}
	return runs
}

// use is what a run, or somebody, does with a target right now.
type use struct {
	who      string
	measures bool // a trial runs, or the next will soon
	doing    string
}

// usedNow is what a run of ours does with a virtual target; nil when none has it.
func (a *app) usedNow(ctx context.Context, t *config.Target) *use {
	found, err := qemu.Find(ctx, t.Name)
	if err != nil {
		return nil
	}
	runs := a.controllers()
	for _, g := range found {
		if r := runs[g.Controller]; r != nil {
			return laneUse(r, t.Name)
		}
	}
	return nil
}

// laneUse is what a run does with a target, nil when its lane is over.
func laneUse(run *results.Run, lane string) *use {
	s, err := run.State()
	if err != nil {
		return &use{who: "run " + run.Name(), measures: true, doing: "uses it"}
	}
	l := s.Model.Lane(lane)
	switch {
	case l == nil: // not begun, or used as a peer
		return &use{who: "run " + run.Name(), measures: true, doing: "has claimed it"}
	case !l.Ended.IsZero():
		return nil
	}
	u := &use{who: "run " + run.Name(), measures: true, doing: "is between two trials"}
	for _, b := range s.Model.Boots {
		if b.Lane == lane && b.Result == nil {
			u.doing = fmt.Sprintf("boots it (boot %d)", b.Number)
		}
	}
	for _, t := range s.Model.Trials {
		for _, at := range t.Attempts {
			if t.Slot.Target == lane && !at.Started.IsZero() && at.Ended.IsZero() && !at.Judged() && at.Session == len(s.Model.Sessions) {
				u.doing = fmt.Sprintf("measures %s %s of kernel %s since %s", t.Slot.Workload, t.Slot.Scenario, t.Slot.Kernel, at.Started.Local().Format("15:04:05"))
			}
		}
	}
	return u
}
