package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kernsweep/orchestrator"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
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
	for _, t := range on.list {
		r, ok := held[t.Name]
		if !ok {
			continue
		}
		doing, measures := useOf(r)
		switch {
		case measures && !anyway:
			busy, whose = append(busy, t.Name), append(whose, fmt.Sprintf("%s by %s (%s)", t.Name, r, doing))
		case measures:
			fmt.Fprintf(a.err, "kernsweep: %s is measured now by %s (%s): this disturbs it\n", t.Name, live.Safe(r.String()), doing)
		default:
			fmt.Fprintf(a.err, "kernsweep: %s is used by %s%s\n", t.Name, live.Safe(r.String()), doing)
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

// useOf says what the holder of a lease does at its target, and whether that
// would be disturbed. A run whose journal is not to be read is taken to measure.
func useOf(r leases.Record) (doing string, measures bool) {
	if r.RunDir == "" {
		return "", false
	}
	run, err := results.Open(r.RunDir)
	if err != nil {
		return "what it does there is not to be read", true
	}
	w := live.Watch(run)
	if _, err := w.Look(); err != nil {
		return "what it does there is not to be read", true
	}
	for _, l := range w.View(time.Now()).Lanes {
		if "target "+l.Name != r.What {
			continue
		}
		if l.State.Over() || l.State == live.Paused {
			return ", whose lane is " + string(l.State), false
		}
		return l.Doing, true
	}
	return "as a peer", true
}
