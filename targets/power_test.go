package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Switching off is confirmed by what was alive before, and by nothing else.
func TestSwitchOff(t *testing.T) {
	chatter := func(ctx context.Context, d *device) {
		for ctx.Err() == nil {
			d.lines <- "tick\r\n"
			<-time.After(time.Second)
		}
	}
	for name, c := range map[string]struct {
		up, talks bool
		right     bool // the outlet is the target's
		said      string
		alive     string
	}{
		"right":                 {up: true, right: true, said: "confirmed: SSH answers before"},
		"wrong":                 {up: true, alive: "SSH answers"},
		"hung but talking":      {talks: true, right: true, said: "confirmed: the console talks before"},
		"hung, talking, wrong":  {talks: true, alive: "the console talks"},
		"silent":                {said: "not confirmed: the target was silent before"},
		"alive in every way":    {up: true, talks: true, right: true, said: "confirmed: SSH answers and the console talks before"},
		"alive, and wrong":      {up: true, talks: true, alive: "SSH answers and the console talks"},
		"silent, right by luck": {right: true, said: "not confirmed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDevice()
				ctx, stop := context.WithCancel(t.Context())
				defer func() { stop(); <-time.After(2 * time.Second) }()
				if !c.up {
					d.goDown()
				}
				if c.talks {
					go chatter(ctx, d)
				}
				d.power = func(on bool) error {
					if c.right && !on {
						d.goDown()
						stop()
					}
					return nil
				}
				begin := time.Now()
				said, err := SwitchOff(t.Context(), d.target(), d)
				var wrong *OutletError
				switch {
				case c.alive == "":
					if err != nil || !strings.Contains(said, c.said) || fmt.Sprint(d.sets) != "[false]" {
						t.Errorf("%q, %v, power %v", said, err, d.sets)
					}
				case !errors.As(err, &wrong) || wrong.Alive != c.alive || fmt.Sprint(d.sets) != "[false true]":
					t.Errorf("%q, %v, power %v", said, err, d.sets)
				}
				if took := time.Since(begin); took > 40*time.Second {
					t.Errorf("took %s", took)
				}
			})
		})
	}
}

// A machine that was coming up when somebody else's supply was switched off stops
// talking once it is up, and has its power all the same.
func TestSwitchOffWhileItComesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDevice()
		d.goDown()
		done := make(chan struct{})
		d.power = func(on bool) error {
			if !on {
				go func() {
					defer close(done)
					d.lines <- "procd: - init complete -\r\n"
					d.comeUp(4*time.Second, idOf(1), goodRelease)
				}()
			}
			return nil
		}
		go func() { <-time.After(time.Second); d.lines <- "mtd: partition table read\r\n" }()
		said, err := SwitchOff(t.Context(), d.target(), d)
		var wrong *OutletError
		if !errors.As(err, &wrong) || !strings.Contains(wrong.Alive, "SSH answers") {
			t.Errorf("%q, %v", said, err)
		}
		<-done
	})
}

// Whatever goes wrong in between, the supply is on in the end.
func TestPowerCycleEndsWithPower(t *testing.T) {
	for name, c := range map[string]struct {
		power  func(ctx context.Context, on bool) error
		cancel time.Duration
		want   string
	}{
		"works":              {power: func(context.Context, bool) error { return nil }},
		"off fails":          {power: func(_ context.Context, on bool) error { return map[bool]error{false: errors.New("jammed")}[on] }, want: "off: jammed"},
		"on fails":           {power: func(_ context.Context, on bool) error { return map[bool]error{true: errors.New("jammed")}[on] }, want: "on: jammed"},
		"interrupted in off": {power: func(context.Context, bool) error { return nil }, cancel: time.Second, want: "canceled"},
		"hangs": {power: func(ctx context.Context, on bool) error {
			if on {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}, want: "off: not done within 1m20s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &scriptedPower{f: c.power}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if c.cancel > 0 {
					defer time.AfterFunc(c.cancel, stop).Stop()
				}
				err := PowerCycle(ctx, &Target{Name: "dev", Power: p})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
				if fmt.Sprint(p.sets) != "[false true]" {
					t.Errorf("power %v", p.sets)
				}
			})
		})
	}
}

type scriptedPower struct {
	f    func(ctx context.Context, on bool) error
	sets []bool
}

func (p *scriptedPower) Set(ctx context.Context, on bool) error {
	p.sets = append(p.sets, on)
	return p.f(ctx, on)
}

func (p *scriptedPower) Outlet() (string, string) { return "pdu-1", "4" }

func TestOutletErrorNamesBoth(t *testing.T) {
	e := &OutletError{Target: "a", Outlet: outletOf(&scriptedPower{}), Alive: "SSH answers", Waited: 20 * time.Second, Victim: "b"}
	want := "target a: its outlet 4 of pdu-1 belongs to someone else: it was switched off, and SSH answers after 20s; target b fell silent instead: are their cables swapped?; it is on again"
	if e.Error() != want {
		t.Error(e)
	}
	e.Victim, e.On = "", errors.New("no answer")
	if s := e.Error(); !strings.Contains(s, "could NOT be switched on again: no answer") || !strings.Contains(s, "look which cable") {
		t.Error(s)
	}
}
