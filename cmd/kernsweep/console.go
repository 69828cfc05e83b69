package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/spf13/cobra"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/targets"
	"kernsweep/targets/console"
)

// consoleFlags of one call.
type consoleFlags struct {
	log      string
	readOnly bool
}

const (
	openTime    = 30 * time.Second // for a console driver to open
	quietTime   = time.Second      // without a word, after the end of the input
	quietMost   = time.Minute      // for a console that is never quiet
	returnTime  = 3 * time.Second  // for a recording to go on with the next boot
	returnRetry = 100 * time.Millisecond
)

func (a *app) consoleCmd() *cobra.Command {
	var f consoleFlags
	c := &cobra.Command{
		Use:   "console TARGET…",
		Short: "Watch the console that a run records, or take the keyboard when nobody uses the target",
		Long: `Watch the console that a run records, or take the keyboard when nobody uses the target.

While a run or kernsweep boot records the console, it is shown and nothing can be
typed: the keyboard is the run's. What was said lately comes first.
Otherwise the target is claimed, so that no run starts on it, and the keyboard is
passed on. After Enter:

  ~.  leave      ~b  send a break      ~~  type ~      ~?  say this

Ctrl-C leaves a console that is only watched; else it is passed on.
The console's bytes are shown as they come, escape sequences included.
Without a terminal the input is passed on as it is, ~ included; after its end the
command waits until the console has been quiet for a second, a minute at most.
--log FILE records, as a run does: FILE, and its times for scriptreplay(1).
Several targets are only watched, line by line, with the name before each; control
characters are shown as ·.

Exit status: 0 left, or the recording ended, 2 usage or configuration, 3 the console
does not open, closed, or the target is in use, 130 interrupted.`,
		Example:           "  kernsweep console ar2317\n  kernsweep console ar2317 --log boot.log\n  kernsweep console class:router",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeHands(false),
		RunE: func(c *cobra.Command, args []string) error {
			on, err := a.choose(args)
			if err != nil {
				return err
			}
			if !on.one {
				return a.consoles(c.Context(), on, f)
			}
			return a.console(c.Context(), on.lab, on.list[0], f)
		},
	}
	c.Flags().StringVar(&f.log, "log", "", "record to this file, which must not exist yet")
	c.Flags().BoolVar(&f.readOnly, "read-only", false, "do not pass the keyboard on")
	return c
}

// console watches a console that is shared, or else opens it.
func (a *app) console(ctx context.Context, lab *config.Lab, t *config.Target, f consoleFlags) error {
	switch who, c, err := console.Watch(a.runs, t.Name); {
	case err == nil:
		return a.watchConsole(ctx, t, who, c, f)
	case targets.TraitsOf(t.Boot).Local:
		return usage(fmt.Errorf("%s is virtual: its console exists only while a run or `kernsweep boot %s KERNEL` runs it with the same --runs", t.Name, t.Name))
	case t.Console == nil:
		return usage(fmt.Errorf("%s: target %s has no console block; give it one, console \"tcp\" { address = \"HOST:PORT\" } or another of kernsweep help testbeds", t.Pos, t.Name))
	}
	release, err := a.claimTargets(ctx, lab, t.Name)
	if err != nil {
		var held *leases.HeldError
		if errors.As(err, &held) {
			err = &statusError{exitInfra, fmt.Errorf("%w (it records no console now; during a boot it does, if it is a run of this user's)", err)}
		}
		return err
	}
	defer release()
	octx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	line, err := t.Console.Open(octx)
	if err != nil {
		return &statusError{exitInfra, fmt.Errorf("target %s: its console does not open: %w", t.Name, err)}
	}
	defer line.Close()
	keep, done, err := a.keepConsole(t.Target, "kernsweep console "+holder(), f.log)
	if err != nil {
		return &statusError{exitInfra, err}
	}
	defer done()
	s := a.newScreen(t.Name)
	if n, ok := line.(targets.Noter); ok {
		for _, note := range n.Notes() {
			s.say(note)
		}
	}
	return s.drive(ctx, line, keep, f.readOnly)
}

// keepConsole shares the console of a target that who uses, and records it to
// path unless that is "". What is not shared is said, and it goes on without.
func (a *app) keepConsole(t targets.Target, who, path string) (w io.Writer, done func(), err error) {
	var share *console.Share
	if t.Console != nil {
		if share, err = console.Offer(a.runs, t.Name, who); err != nil {
			fmt.Fprintln(a.err, "kernsweep:", err)
		}
	}
	unshare := func() {
		if share != nil {
			_ = share.Close() // those who watch are told by its end
		}
	}
	w = io.Discard
	if share != nil {
		w = share
	}
	if path == "" {
		return w, unshare, nil
	}
	rec, err := console.Record(path, console.Limits{})
	if err != nil {
		unshare()
		return nil, nil, err
	}
	return io.MultiWriter(rec, w), func() {
		unshare()
		if err := rec.Close(); err != nil {
			fmt.Fprintln(a.err, "kernsweep:", err)
		}
	}, nil
}

// watchConsole shows what another process records until that ends. A run's
// recording goes on with its next boot.
func (a *app) watchConsole(ctx context.Context, t *config.Target, who string, c io.ReadCloser, f consoleFlags) error {
	if f.log != "" {
		_ = c.Close() // nothing was sent
		return usage(fmt.Errorf("the console of %s is recorded already, by %s: leave out --log", t.Name, who))
	}
	s := a.newScreen(t.Name)
	defer s.restore()
	s.say("watching what " + who + " records; read-only, the keyboard is the run's; Ctrl-C leaves")
	for {
		err := s.drive(ctx, readOnlyLine{c}, io.Discard, true)
		var ended *consoleEnded
		if !errors.As(err, &ended) || !errors.Is(err, io.EOF) {
			return err
		}
		again, next := a.rewatch(ctx, t.Name)
		if next == nil {
			s.say("the recording has ended")
			return nil
		}
		if again == who {
			s.say("the recording goes on (a new boot, or this terminal was too slow and missed something)")
		} else {
			s.say("now recorded by " + again)
		}
		who, c = again, next
	}
}

// rewatch attaches again within returnTime, or returns nil.
func (a *app) rewatch(ctx context.Context, target string) (who string, c io.ReadCloser) {
	ctx, stop := context.WithTimeout(ctx, returnTime)
	defer stop()
	tick := time.NewTicker(returnRetry)
	defer tick.Stop()
	for {
		if who, c, err := console.Watch(a.runs, target); err == nil {
			return who, c
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", nil
		}
	}
}

// readOnlyLine is a console that takes no keys.
type readOnlyLine struct{ io.ReadCloser }

func (readOnlyLine) Write(p []byte) (int, error) { return 0, net.ErrClosed }
