package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"kernsweep/targets"
)

// commandTime bounds one power command once it is its turn, beside the driver's
// own deadline.
const commandTime = time.Minute

// Supply is a target's power in the hands of a lane or a person: commands to
// one strip are given one after another, also across processes, and switching
// off is confirmed by the target falling silent.
type Supply struct {
	t     *targets.Target
	strip *strip
	note  func(string)

	lane *lane // that asks whose power was cut; nil: by hand, nobody is asked

	mu    sync.Mutex
	wrong *targets.OutletError // what the outlet was found to be, whatever a boot method made of it
}

// NewSupply is the power of t, which has a power driver, for a command by hand.
// c holds the target. note gets what a person should know.
func NewSupply(c *Claims, t *targets.Target, note func(string)) *Supply {
	return &Supply{t: t, strip: &strip{t.Power, newLocks(c)}, note: note}
}

// Set switches. Off that reaches something else than the target is a
// *targets.OutletError, and the outlet is on again; it is not switched off twice.
func (s *Supply) Set(ctx context.Context, on bool) error {
	if on {
		return s.strip.Set(ctx, true)
	}
	if wrong := s.notOurs(); wrong != nil {
		return wrong
	}
	off := &watchedStrip{strip: s.strip}
	if s.lane != nil {
		defer s.lane.r.outages.begin(s.t.Name)()
		off.look = s.lane.dark
	}
	said, err := targets.SwitchOff(ctx, s.t, off)
	var wrong *targets.OutletError
	if errors.As(err, &wrong) {
		s.mu.Lock()
		s.wrong = wrong
		s.mu.Unlock()
	}
	if wrong != nil && s.lane != nil {
		wrong.Victim = strings.Join(off.dark, " and target ")
		s.lane.blame(ctx, off.dark)
	}
	if said != "" {
		s.note(said)
	}
	return err
}

// notOurs is what was found out about an outlet that belongs to someone else.
func (s *Supply) notOurs() *targets.OutletError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrong
}

// watchedStrip looks who is without power before it gives it back, which is only
// asked of it when the wrong machine was switched off.
type watchedStrip struct {
	*strip
	look func(context.Context) []string // nil: nobody looks
	dark []string
}

// Set switches.
func (s *watchedStrip) Set(ctx context.Context, on bool) error {
	if on && s.look != nil {
		s.dark = s.look(ctx)
	}
	return s.strip.Set(ctx, on)
}

// Outlet is the driver's own.
func (s *Supply) Outlet() (strip, outlet string) { return s.strip.Outlet() }

// Close ends what the driver holds.
func (s *Supply) Close() error { return s.strip.Close() }

// strip is a driver whose commands wait for their turn.
type strip struct {
	targets.Power
	locks *locks
}

// SharedStrip is the driver p, which waits for its turn like every Supply. It
// confirms nothing: targets.SwitchOff does.
func SharedStrip(c *Claims, p targets.Power) targets.Power { return &strip{p, newLocks(c)} }

// Close ends what the driver holds.
func (s *strip) Close() error {
	if c, ok := s.Power.(targets.Closer); ok {
		return c.Close()
	}
	return nil
}

// Programs are the driver's own.
func (s *strip) Programs(t *targets.Target) []string {
	if r, ok := s.Power.(targets.Runner); ok {
		return r.Programs(t)
	}
	return nil
}

func (s *strip) Outlet() (strip, outlet string) {
	if o, ok := s.Power.(targets.Outlet); ok {
		return o.Outlet()
	}
	return "", ""
}

// Set waits until nobody else talks to the strip, and then switches.
func (s *strip) Set(ctx context.Context, on bool) error {
	if name, _ := s.Outlet(); name != "" {
		release, err := s.locks.acquire(ctx, "strip:"+name)
		if err != nil {
			return fmt.Errorf("power strip %s is in use by others: %w", name, err)
		}
		defer release()
	}
	ctx, stop := context.WithTimeoutCause(ctx, commandTime, fmt.Errorf("the driver is not done within %s", commandTime))
	defer stop()
	return s.Power.Set(ctx, on)
}
