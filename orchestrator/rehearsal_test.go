package orchestrator

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/targets/qemu"
)

func TestRehearsalsAreDemanded(t *testing.T) {
	now := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	passed := []RehearsalStep{{Name: "power", OK: true, Took: 3 * time.Second}, {Name: "hang", NA: true, Text: "not allowed"}}
	for name, c := range map[string]struct {
		r    *Rehearsal // nil: never
		raw  string
		want string // "" = nothing is wrong
	}{
		"never":  {want: "target box: never rehearsed; run kernsweep target doctor box"},
		"fresh":  {r: &Rehearsal{Address: "10.0.0.1:0", When: now.Add(-719 * time.Hour), Steps: passed}},
		"old":    {r: &Rehearsal{Address: "10.0.0.1:0", When: now.Add(-1000 * time.Hour), Steps: passed}, want: "target box: rehearsed 41 days ago; run"},
		"moved":  {r: &Rehearsal{Address: "10.0.0.9:22", When: now, Steps: passed}, want: "rehearsed at another address, 10.0.0.9:22, and it is 10.0.0.1:0 now"},
		"failed": {r: &Rehearsal{Address: "10.0.0.1:0", When: now.Add(-time.Hour), Steps: append(passed[:1:1], RehearsalStep{Name: "console", Text: "not one byte"})}, want: `its rehearsal 1h00m ago failed at "console": not one byte`},
		"future": {r: &Rehearsal{Address: "10.0.0.1:0", When: now.Add(time.Hour), Steps: passed}, want: "is the controller's clock right?"},
		"empty":  {r: &Rehearsal{Address: "10.0.0.1:0", When: now}, want: "has no steps"},
		"torn":   {raw: `{"target": "b`, want: "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			runs := t.TempDir()
			lab := &config.Lab{
				Targets: []*config.Target{{Target: targets.Target{Name: "box", SSH: targets.SSH{Host: "10.0.0.1"}}}, {Target: targets.Target{Name: "guest", Boot: &qemu.Machine{}}}},
				Sweeps:  []*config.Sweep{{Name: "s", Rehearsed: 720 * time.Hour}, {Name: "free"}},
			}
			p := &plan.Plan{Sweep: "s", Lanes: []plan.Lane{{Target: "box"}, {Target: "guest"}}}
			if c.r != nil {
				c.r.Target = "box"
				if err := c.r.Save(runs); err != nil {
					t.Fatal(err)
				}
				if got, err := LoadRehearsal(runs, "box"); err != nil || !got.When.Equal(c.r.When) || len(got.Steps) != len(c.r.Steps) {
					t.Errorf("%+v, %v", got, err)
				}
			}
			if c.raw != "" {
				if err := (&Rehearsal{Target: "box"}).Save(runs); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(rehearsalFile(runs, "box"), []byte(c.raw), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			err := CheckRehearsals(runs, lab, p, now)
			var bad *NotRehearsedError
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &bad) || len(bad.Lacks) != 1 || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			p.Sweep = "free"
			if err := CheckRehearsals(runs, lab, p, now); err != nil {
				t.Errorf("a sweep that demands nothing: %v", err)
			}
		})
	}
}
