package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"time"

	"golang.org/x/term"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/live/tui"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

// whole is the terminal on which a view may take the whole screen; ok is false
// where there is none.
func (a *app) whole() (in, out *os.File, ok bool) {
	in, ok = a.in.(*os.File)
	if !ok || a.json || a.noColor {
		return nil, nil, false
	}
	w := a.out
	if c, is := w.(*checked); is {
		w = c.w
	}
	if out, ok = w.(*os.File); !ok {
		return nil, nil, false
	}
	t, _ := a.env("TERM")
	return in, out, t != "" && t != "dumb" && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// watchScreen shows the live view until the person leaves it. What it showed last
// stays on the terminal as plain lines.
func (a *app) watchScreen(ctx context.Context, run *results.Run, in, out *os.File) error {
	w := live.Watch(run)
	source := tui.Source{
		Look: func() (live.View, []live.Event, error) {
			recs, err := w.Look()
			var events []live.Event
			for _, rec := range recs {
				if e, ok := live.EventOf(rec); ok {
					events = append(events, e)
				}
			}
			return w.View(time.Now()), events, err
		},
		Console: func(lane string, boot int) *live.Recording { return live.Console(run, lane, boot) },
		Ask:     func(ctx context.Context, r control.Request) (string, error) { return control.Ask(ctx, run, r) },
		Cannot:  func() string { return cannotSteer(run) },
		By:      who() + ", kernsweep watch",
		Report:  a.command("report", run),
		Resume:  a.command("resume", run),
	}
	v, err := tui.Show(ctx, in, out, os.Environ(), source)
	if err != nil && ctx.Err() == nil {
		return &statusError{exitInfra, err}
	}
	if s, e := a.status(run.Dir()); e == nil {
		a.printStatus(s, true)
	}
	switch {
	case err != nil:
		return err
	case v.State == live.Executing || v.State == live.Starting || v.State == "":
		fmt.Fprintf(a.err, "run %s goes on\n", paste.Word(run.Name())) // the status says how to come back
		return nil
	}
	return a.watched(run, v.State)
}

// cannotSteer says why the controller of a run cannot be asked from here, "" when
// it can.
func cannotSteer(run *results.Run) string {
	h, held := run.HeldBy()
	if !held {
		return "" // the controller, or its absence, will say
	}
	if !h.Here() {
		return fmt.Sprintf("the run is executed by %s: steer it there", h)
	}
	if u, err := user.Current(); err == nil && u.Uid != "0" && u.Username != h.Owner {
		return fmt.Sprintf("the run is executed by %s, and only %s or root can steer it", h, h.Owner)
	}
	return ""
}
