package orchestrator

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/targets"
)

// Commands to one strip are given one after the other, also by another process:
// its locks share nothing with ours but the folder of the leases.
func TestOneStripTakesOneCommandAtATime(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	strip := newPDU(nil)
	var wg sync.WaitGroup
	for _, outlet := range []string{"1", "2", "3", "4"} {
		m := &targets.Target{Name: "t" + outlet, Power: &plug{pdu: strip, outlet: outlet, takes: 20 * time.Millisecond}}
		s := NewSupply(claims(t, folder), m, func(string) {})
		wg.Go(func() {
			for range 3 {
				if err := s.Set(t.Context(), true); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if strip.mixed || len(strip.said) != 12 {
		t.Errorf("commands ran into each other: %v, %v", strip.mixed, strip.said)
	}
}

// By hand nobody else is asked, and what could not be confirmed is said.
func TestPowerByHand(t *testing.T) {
	m := newMachine(t)
	m.off = true
	tg := &targets.Target{Name: "box", Dial: m.dial, Power: &plug{pdu: newPDU(map[string]*machine{"1": m}), outlet: "1"}}
	said := ""
	tg.Power = NewSupply(nil, tg, func(s string) { said += s })
	if err := targets.PowerCycle(t.Context(), tg); err != nil || !strings.Contains(said, "power-off is not confirmed") {
		t.Errorf("%q, %v", said, err)
	}
	said = ""
	if err := tg.Power.Set(t.Context(), false); err != nil || !strings.Contains(said, "power-off is confirmed: SSH answers before") {
		t.Errorf("%q, %v", said, err)
	}
}
