package targets

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of switching a supply.
const (
	powerOff    = 2 * time.Second  // off, so that capacitors run empty
	powerTime   = time.Minute      // for one command, beside the driver's own deadline
	lifeTime    = 5 * time.Second  // to see whether a machine lives
	silentTime  = 20 * time.Second // until a machine without power must have fallen silent
	silentAfter = 2 * time.Second  // a console that says nothing for this long
	silentLooks = 2                // a second apart, where the console alone talked before
	onTime      = time.Minute      // to switch on again after ctx has ended
)

// OutletError says that switching off a target's supply did not switch off that
// target: the outlet belongs to something else. It is on again, unless On says
// why not. Trying again helps nothing: somebody must look at the cables.
type OutletError struct {
	Target string
	Outlet string        // as the driver names it; "" where it cannot
	Alive  string        // what shows that the target has power
	Waited time.Duration // after switching off
	Victim string        // what fell silent instead, once somebody found out; "" unknown
	On     error         // of switching it on again
}

func (e *OutletError) Error() string {
	s := fmt.Sprintf("target %s: its outlet%s belongs to someone else: it was switched off, and %s after %s", e.Target, e.Outlet, e.Alive, e.Waited)
	if e.Victim != "" {
		s += "; target " + e.Victim + " fell silent instead: are their cables swapped?"
	} else {
		s += "; look which cable is in it"
	}
	if e.On != nil {
		return s + fmt.Sprintf("; it could NOT be switched on again: %v", e.On)
	}
	return s + "; it is on again"
}

// outletOf names a supply's outlet: " pdu-1 outlet 4".
func outletOf(p Power) string {
	if o, ok := p.(Outlet); ok {
		if strip, outlet := o.Outlet(); strip != "" {
			if strings.Trim(outlet, "0123456789.") != "" {
				outlet = strconv.Quote(outlet)
			}
			return " " + outlet + " of " + strip
		}
	}
	return ""
}

// PowerCycle switches t off and, after a moment, on.
func PowerCycle(ctx context.Context, t *Target) error {
	if t.Power == nil {
		return fmt.Errorf("target %s has no power block", t.Name)
	}
	octx, stop := context.WithTimeoutCause(ctx, powerTime+silentTime, fmt.Errorf("not done within %s", powerTime+silentTime))
	err := t.Power.Set(octx, false)
	stop()
	var wrong *OutletError
	if errors.As(err, &wrong) {
		return err // it is on again
	}
	if err == nil {
		_ = sleep(ctx, powerOff)
		t.consoleAnew()
	}
	// On again whatever happened: nobody wants it left off, and a command that
	// failed may have worked.
	if e := switchOn(ctx, t.Power); e != nil && err == nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("off: %w", err)
	}
	return context.Cause(ctx)
}

func switchOn(ctx context.Context, p Power) error {
	ctx, stop := Afterwards(ctx, onTime)
	defer stop()
	if err := p.Set(ctx, true); err != nil {
		return fmt.Errorf("on: %w", err)
	}
	return nil
}

// SwitchOff switches t off by p, the bare driver of its supply, and confirms it:
// a target that was alive before must fall silent within 20 s. said tells what
// was seen, also that nothing could be confirmed because it was silent before.
// Where it lives on the supply is switched on again and the error is an
// *OutletError; any other error is the driver's.
func SwitchOff(ctx context.Context, t *Target, p Power) (said string, err error) {
	before := t.life(ctx, lifeTime)
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	begin := time.Now()
	if err := p.Set(ctx, false); err != nil {
		return "", err
	}
	if before == (life{}) {
		return "power-off is not confirmed: the target was silent before (no SSH, nothing on a console)", nil
	}
	alive, looks := "", 0
	for time.Since(begin) < silentTime {
		// A machine on its way up stops talking when it is up: then SSH answers.
		now := t.lifeOf(ctx, life{ssh: true, console: before.console}, silentAfter)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if alive = now.String(); alive != "" {
			looks = 0
		} else if looks++; before.ssh || looks >= silentLooks {
			return fmt.Sprintf("power-off is confirmed: %s before, silent after %s", before, time.Since(begin).Round(100*time.Millisecond)), nil
		}
		if err := sleep(ctx, time.Second); err != nil {
			return "", err
		}
	}
	return "", &OutletError{Target: t.Name, Outlet: outletOf(p), Alive: alive, Waited: time.Since(begin).Round(time.Second), On: switchOn(ctx, p)}
}

// life is what shows that a machine has power.
type life struct{ ssh, console bool }

func (a life) String() string {
	switch {
	case a.ssh && a.console:
		return "SSH answers and the console talks"
	case a.ssh:
		return "SSH answers"
	case a.console:
		return "the console talks"
	}
	return ""
}

// life looks for every sign of it within a time.
func (t *Target) life(ctx context.Context, within time.Duration) life {
	return t.lifeOf(ctx, life{ssh: true, console: true}, within)
}

// lifeOf looks for the signs that are asked for, side by side. An SSH server
// that answers at once ends the look at a console.
func (t *Target) lifeOf(ctx context.Context, ask life, within time.Duration) life {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	var found life
	var wg sync.WaitGroup
	if ask.console {
		if h, err := t.listen(ctx); err == nil {
			defer h.close()
			h.forget()
			wg.Go(func() {
				b, err := h.ear.Next(ctx)
				found.console = err == nil && len(b) > 0
			})
		}
	}
	if ask.ssh && t.Dial != nil {
		found.ssh = t.sshAnswers(ctx)
		if found.ssh && ask.console {
			_ = sleep(ctx, time.Second) // the console has its moment too
			stop()
		}
	}
	wg.Wait()
	return found
}

// sshAnswers says that an SSH server lets us in or refuses us. A connection that
// is accepted and then mute may be a forwarder's.
func (t *Target) sshAnswers(ctx context.Context) bool {
	conn, err := t.Dial(ctx, t.SSH, DialOptions{})
	if err == nil {
		_ = conn.Close() // that it came about was the question
		return true
	}
	var link *LinkError
	return errors.As(err, &link) && (link.Refused || link.Phase == "log in")
}
