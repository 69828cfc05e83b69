package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/qemu"
)

// undisturbed refuses to touch targets that a run measures now, unless anyway.
// Who else uses a target is said. Nothing is contacted for it.
func (a *app) undisturbed(ctx context.Context, on choice, anyway bool) error {
	held, err := orchestrator.Holders(ctx, a.claimOptions(), on.list)
	if err != nil { // of the folder: then nobody can have told us
		fmt.Fprintln(a.err, "kernsweep: whether a run measures a target now is not known:", live.Safe(err.Error()))
		return ctx.Err()
	}
	var busy, whose []string
	runs := runViews{}
	for _, t := range on.list {
		var u *use
		if r, ok := held[t.Name]; ok {
			u = runs.use(r)
		} else if targets.TraitsOf(t.Boot).Local {
			u = runs.guest(ctx, a, t)
		}
		switch {
		case u == nil:
		case u.measures && !anyway:
			busy, whose = append(busy, t.Name), append(whose, fmt.Sprintf("%s by %s (%s)", t.Name, u.who, u.doing))
		case u.measures:
			fmt.Fprintf(a.err, "kernsweep: %s is measured now by %s (%s): this disturbs it\n", t.Name, live.Safe(u.who), live.Safe(u.doing))
		default:
			fmt.Fprintf(a.err, "kernsweep: %s is used by %s (%s)\n", t.Name, live.Safe(u.who), live.Safe(u.doing))
		}
	}
	if len(busy) == 0 {
		return nil
	}
	hint := "wait, or use --anyway"
	if len(on.list) > len(busy) {
		hint = "leave it out ('!" + strings.Join(busy, ",!") + "'), wait, or use --anyway"
	}
	return &statusError{exitInfra, fmt.Errorf("nothing was sent, since it would disturb what is measured now: %s; %s", live.Safe(listed(whose)), hint)}
}

// runViews are runs by their directory, each read once; nil: it is not to be read.
type runViews map[string]*live.View

func (v runViews) of(dir string) *live.View {
	if view, ok := v[dir]; ok {
		return view
	}
	v[dir] = nil
	run, err := results.Open(dir)
	if err != nil {
		return nil
	}
	w := live.Watch(run)
	if _, err := w.Look(); err != nil {
		return nil
	}
	view := w.View(time.Now())
	v[dir] = &view
	return &view
}

// use is what somebody does at a target.
type use struct {
	who      string
	measures bool // a trial runs, or the next will soon
	doing    string
}

// use is what the holder of a lease does at its target.
func (v runViews) use(r leases.Record) *use {
	u := use{who: r.String(), doing: "since " + r.Since.Local().Format("15:04")}
	if r.RunDir == "" {
		return &u
	}
	return v.lane(r.RunDir, strings.TrimPrefix(r.What, "target "), u)
}

// guest is what a run of ours does with a virtual target, which nobody leases;
// nil when none has it.
func (v runViews) guest(ctx context.Context, a *app, t *config.Target) *use {
	found, err := qemu.Find(ctx, t.Name)
	if err != nil {
		return nil
	}
	runs := a.controllers()
	for _, g := range found {
		if r := runs[g.Controller]; r != nil {
			return v.lane(r.Dir(), t.Name, use{who: "run " + r.Name(), doing: "has claimed it"})
		}
	}
	return nil
}

// lane is what a run does with a target. One whose journal is not to be read is
// taken to measure.
func (v runViews) lane(dir, target string, u use) *use {
	u.measures = true
	view := v.of(dir)
	if view == nil {
		return &u
	}
	for _, l := range view.Lanes {
		if l.Name != target {
			continue
		}
		u.doing = l.Doing
		if l.State.Over() || l.State == live.Paused {
			u.doing, u.measures = "its lane is "+string(l.State), false
		}
		return &u
	}
	u.doing = "as a peer"
	return &u
}
