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
	return a.reachBy(ctx, sshconn.New(a.logger()), t, nil)
}

// reachBy is reachNow by a Dialer that serves several targets. server is told what
// it saw of the server, unless it is nil.
func (a *app) reachBy(ctx context.Context, d *sshconn.Dialer, t *config.Target, server func(targets.ServerFacts)) (targets.Conn, error) {
	s := t.SSH
	if targets.TraitsOf(t.Boot).Local {
		var err error
		if s, err = a.guestOf(ctx, t); err != nil {
			return nil, err
		}
	}
	conn, err := d.Dial(ctx, s, targets.DialOptions{Note: func(s string) { fmt.Fprintln(a.err, live.Safe(s)) }, Server: server})
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
