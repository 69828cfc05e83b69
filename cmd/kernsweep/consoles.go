package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/targets"
	"kernsweep/targets/console"
)

// idleTime is how long a console may be silent in the middle of a line, as at a
// prompt, until the line is shown.
const idleTime = time.Second

// consoles watches several consoles at once, line by line. Nothing is typed.
func (a *app) consoles(ctx context.Context, on choice, f consoleFlags) error {
	if f.log != "" || a.json {
		return usage(errors.New("--log and --json are for one console"))
	}
	var open []string // that nobody records
	for _, t := range on.list {
		if _, c, err := console.Watch(a.runs, t.Name); err == nil {
			_ = c.Close() // nothing was sent
			continue
		}
		if targets.TraitsOf(t.Boot).Local || t.Console == nil {
			return usage(fmt.Errorf("%s: target %s has no console now%s", t.Pos, t.Name, on.without(t)))
		}
		open = append(open, t.Name)
	}
	if len(open) > 0 {
		release, err := a.claimTargets(ctx, on.lab, open...)
		if err != nil {
			return err
		}
		defer release()
	}
	fmt.Fprintln(a.err, "kernsweep: read-only; Ctrl-C leaves")
	out := &oneWriter{w: a.out}
	return a.many(ctx, on, limits{}, &oneWriter{w: a.err}, func(ctx context.Context, h hand) deed {
		h.begins()
		return deed{err: h.console(ctx, out)}
	})
}

// console shows one console until it ends.
func (h hand) console(ctx context.Context, out io.Writer) error {
	say := func(text string) { fmt.Fprintln(h.err, "kernsweep: "+live.Safe(text)) }
	who, shared, err := console.Watch(h.runs, h.t.Name)
	if err != nil {
		return h.openConsole(ctx, out)
	}
	say("recorded by " + who)
	for {
		err := h.showLines(ctx, shared, h.lines(out))
		if ctx.Err() != nil {
			return err
		}
		if who, shared = h.rewatch(ctx, h.t.Name); shared == nil {
			say("the recording has ended")
			return nil
		}
		say("now recorded by " + who)
	}
}

// openConsole shows a console that nobody else has open, and shares it.
func (h hand) openConsole(ctx context.Context, out io.Writer) error {
	octx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	line, err := h.t.Console.Open(octx)
	if err != nil {
		return &statusError{exitInfra, fmt.Errorf("target %s: its console does not open: %w", h.t.Name, err)}
	}
	keep, done, err := h.keepConsole(h.t.Target, "kernsweep console "+holder(), "")
	if err != nil {
		return &statusError{exitInfra, errors.Join(err, line.Close())}
	}
	defer done()
	lines := h.lines(out)
	err = h.showLines(ctx, struct {
		io.Reader
		io.Closer
	}{io.TeeReader(line, keep), line}, lines)
	if err == nil {
		err = io.EOF
	}
	return &statusError{exitInfra, &consoleEnded{h.t.Name, err}}
}

// showLines shows what c says until it ends or ctx does, and closes c.
func (h hand) showLines(ctx context.Context, c io.ReadCloser, lines *labelled) error {
	unhook := context.AfterFunc(ctx, func() { c.Close() })
	defer unhook()
	defer c.Close()
	defer lines.Close()
	idle := time.AfterFunc(idleTime, func() { lines.Close() })
	defer idle.Stop()
	b := make([]byte, 4<<10)
	for {
		n, err := c.Read(b)
		if _, werr := lines.Write(b[:n]); werr != nil {
			return werr
		}
		idle.Reset(idleTime)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
