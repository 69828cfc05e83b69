package orchestrator

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/targets/boot"
	"kernsweep/targets/console"
	"kernsweep/targets/power"
	"kernsweep/targets/qemu"
)

// Nobody may leave when a program that a night's boots need is not there.
func TestPreflightLooksForPrograms(t *testing.T) {
	f := newFakeLab(t, nil)
	for name, want := range map[string]struct {
		t    targets.Target
		text string
	}{
		"box":   {targets.Target{Boot: f.m}, "reached"},
		"real":  {targets.Target{Boot: &boot.Command{Command: []string{"true", "x"}}}, "reached"},
		"boot":  {targets.Target{Boot: &boot.Command{Command: []string{"/no/pxe-boot"}}}, "reached; missing on the controller: /no/pxe-boot"},
		"power": {targets.Target{Boot: f.m, Power: &power.Command{On: []string{"no-relay", "1"}, Off: []string{"no-relay", "0"}}}, "reached; missing on the controller: no-relay"},
		"line":  {targets.Target{Boot: f.m, Console: &console.Command{Command: []string{"no-picocom"}}}, "reached; missing on the controller: no-picocom"},
		"guest": {targets.Target{Arch: "mips", Boot: &qemu.Machine{Program: "no-qemu"}}, "virtual, starts with its first boot; missing on the controller: no-qemu"},
	} {
		want.t.Name = name
		f.lab.Targets = []*config.Target{{Target: want.t}}
		got := Preflight(t.Context(), f.lab, &plan.Plan{Lanes: []plan.Lane{{Target: name}}}, f.dial)
		if got[0].Text != want.text || got[0].Safe == strings.Contains(want.text, "missing") {
			t.Errorf("%s: %+v, want %q", name, got[0], want.text)
		}
	}
}
