package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

const testKnob = "/proc/sys/kernel/random/poolsize" // the machine's own file in its namespace

func knobOf(t *testing.T, m *machine) string {
	b, err := os.ReadFile(filepath.Join(m.dir, "knob"))
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(b))
}

// Whatever ends a trial, its knobs have their old values in the end.
func TestKnobsAreRestored(t *testing.T) {
	lost := &targets.LinkError{Phase: "exec", Err: errors.New("the cable is out")}
	for name, c := range map[string]struct {
		end  func(f *fakeLab, cancel func()) error
		note string
	}{
		"over": {func(*fakeLab, func()) error { return nil }, ""},
		"interrupted": {func(_ *fakeLab, cancel func()) error {
			cancel()
			return context.Canceled
		}, ""},
		"link lost and regained": {func(f *fakeLab, _ func()) error {
			f.m.mu.Lock()
			defer f.m.mu.Unlock()
			f.m.cut()
			return lost
		}, "knob " + testKnob + " is restored to 256"},
		"link lost for a while": {func(f *fakeLab, cancel func()) error {
			f.m.mu.Lock()
			defer f.m.mu.Unlock()
			f.m.cut()
			f.m.refuse = 1
			cancel() // nobody dials before the lane leaves
			return lost
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f *fakeLab
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			trials := 0
			f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
				if got := knobOf(t, f.m); got != "512" {
					t.Errorf("the knob is %s during the trial", got)
				}
				if trials++; trials > 1 {
					return nil
				}
				return c.end(f, cancel)
			}}})
			f.lab.Workloads[0].Scenarios[0].Common.Knobs = map[string]string{testKnob: "512"}
			f.lab.Sweeps[0].Boots = 1
			_, m, err := f.execute(t, ctx, nil)
			if err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
			if got := knobOf(t, f.m); got != "256" || trials == 0 {
				t.Errorf("the knob is %s after %d trials; %v\n%s", got, trials, m.Count(), notes(m, "box"))
			}
			if !strings.Contains(notes(m, "box"), c.note) {
				t.Errorf("no note %q:\n%s", c.note, notes(m, "box"))
			}
			if n := m.Count(); ctx.Err() == nil && n[results.OK] != 2 {
				t.Errorf("outcomes %v", n)
			}
		})
	}
}
