package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// pdu is a power strip whose outlets feed machines, not always the right ones.
type pdu struct {
	mu    sync.Mutex
	feeds map[string]*machine
	off   map[string]bool
	said  []string
	busy  bool
	mixed bool // two commands at once
	dead  error
}

func newPDU(feeds map[string]*machine) *pdu { return &pdu{feeds: feeds, off: map[string]bool{}} }

// plug is the power driver of one outlet.
type plug struct {
	*pdu
	outlet string
	takes  time.Duration
}

func (p *plug) Outlet() (strip, outlet string) { return "pdu-1", p.outlet }

func (p *plug) Set(ctx context.Context, on bool) error {
	p.mu.Lock()
	p.mixed = p.mixed || p.busy
	p.busy = true
	p.said = append(p.said, fmt.Sprint(p.outlet, on))
	p.mu.Unlock()
	if p.takes > 0 {
		t := time.NewTimer(p.takes)
		defer t.Stop()
		<-t.C
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = false
	if p.dead != nil {
		return p.dead
	}
	p.off[p.outlet] = !on
	if m := p.feeds[p.outlet]; m != nil {
		m.supply(on)
	}
	return nil
}

// Two cables of a strip are swapped: switching off one target darkens the other.
func TestSwappedCables(t *testing.T) {
	t.Parallel()
	var once sync.Once
	begun := make(chan struct{})
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(ctx context.Context, env *workloads.Env) error {
		hit := false
		once.Do(func() { hit = true; close(begun) })
		if !hit {
			return nil
		}
		e, err := env.Target.Conn.Run(ctx, targets.Cmd{Argv: []string{"sleep", "60"}}) // until its power is cut
		if err == nil {
			err = fmt.Errorf("the victim's trial was not disturbed: %s", e)
		}
		return err
	}}})
	victim, vconf := f.addMachine(t, "other")
	strip := newPDU(map[string]*machine{"1": victim, "2": f.m})
	box := f.lab.Targets[0]
	box.Power, vconf.Power = &plug{pdu: strip, outlet: "1"}, &plug{pdu: strip, outlet: "2"}
	box.KnownGood, box.Timeout.Down = "a", time.Second
	f.m.traits = targets.BootTraits{Returns: true, Running: true}
	f.lab.Sweeps[0].Boots = 1
	f.m.fail = func(int, string) error { // the first boot fails once the other lane measures
		<-begun
		return panics("b")
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	checkSwapped(t, m)
	if strip.off["1"] || strip.off["2"] || fmt.Sprint(strip.said) != "[1false 1true]" {
		t.Errorf("power: %v", strip.said)
	}
}

// triesAgain is a boot method that cuts the supply until it gives up, and reports
// what went wrong first.
type triesAgain struct{ *machine }

func (b triesAgain) Boot(ctx context.Context, t *targets.Target, _ targets.Kernel) error {
	for range 3 {
		_ = targets.PowerCycle(ctx, t)
	}
	return errors.New("gave up after 3 tries, the first: missed autoboot window")
}

// An outlet that was found to belong to someone else is not switched off again,
// whatever a boot method makes of that, and the lane says so.
func TestSwappedCablesInABoot(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	victim, _ := f.addMachine(t, "other")
	strip := newPDU(map[string]*machine{"1": victim, "2": f.m})
	box := f.lab.Targets[0]
	box.Power, box.Boot = &plug{pdu: strip, outlet: "1"}, triesAgain{f.m}
	box.Timeout.Boot = time.Minute
	f.lab.Sweeps[0].Boots = 1
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := laneOf(t, m, "box"); !l.Quarantined || !strings.Contains(l.Reason, "its outlet 1 of pdu-1 belongs to someone else") {
		t.Errorf("lane box: %+v", l)
	}
	if off := strings.Count(fmt.Sprint(strip.said), "1false"); off != 1 || strip.off["1"] {
		t.Errorf("power: %v", strip.said)
	}
}

// checkSwapped wants the lane of the target with the wrong cable to stop, and
// the other one to go on.
func checkSwapped(t *testing.T, m *results.Model) {
	t.Helper()
	l := laneOf(t, m, "box")
	if !l.Quarantined || !strings.Contains(l.Reason, "its outlet 1 of pdu-1 belongs to someone else") || !strings.Contains(l.Reason, "target other fell silent instead") {
		t.Errorf("lane box: %+v", l)
	}
	if o := laneOf(t, m, "other"); o.Quarantined || !strings.Contains(notes(m, "other"), "its power was cut: the outlet that is configured for target box") {
		t.Errorf("lane other: %+v\n%s", o, notes(m, "other"))
	}
	lost := 0
	for _, tr := range m.Trials {
		if tr.Slot.Target != "other" {
			continue
		}
		if tr.Outcome() != results.OK {
			t.Errorf("%s ended %s", tr.Slot.Cell, tr.Outcome())
		}
		for _, a := range tr.Attempts {
			if a.Outcome == results.Lost && strings.Contains(a.Reason, "its power was cut") {
				lost++
			} else if a.Outcome != results.OK {
				t.Errorf("attempt %+v", a)
			}
		}
	}
	if lost != 1 {
		t.Errorf("%d trials were lost to the cut", lost)
	}
	if s := m.ExitStatus(); s != 3 {
		t.Errorf("exit status %d", s)
	}
}
