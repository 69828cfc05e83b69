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

// A controller that died between setting a knob and beginning its trial left the
// knob set in a boot that goes on, for boot method none has no other: it is put
// back before anything is measured there.
func TestKnobOfADeadControllerInAPlainBoot(t *testing.T) {
	t.Parallel()
	var seen []string
	var f *fakeLab
	f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
		seen = append(seen, knobOf(t, f.m))
		return nil
	}}})
	f.m.once = true
	knobs := map[string]string{testKnob: "512"}
	f.lab.Workloads[0].Scenarios[0].Common.Knobs = knobs
	run, _, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	journal := filepath.Join(run.Dir(), "journal.jsonl")
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		kept.WriteString(line)
		if strings.Contains(line, `"kind":"knob"`) {
			break
		}
	}
	for path, body := range map[string]string{journal: kept.String(), filepath.Join(f.m.dir, "knob"): "512\n"} {
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	seen, f.resume = nil, true
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	m, err := f.executeIn(t, t.Context(), run, Remaining(f.lab, planOf(t, f), state.Model, Rerun{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range m.Trials {
		if v := tr.Valid(); v != nil && !strings.Contains(strings.Join(v.Parsed.Notes, "\n"), "(was 256)") {
			t.Errorf("a trial found the knob as the dead controller had set it: %q", v.Parsed.Notes)
		}
	}
	if got := knobOf(t, f.m); got != "256" || len(seen) == 0 || !strings.Contains(notes(m, "box"), "knob "+testKnob+" is restored to 256") {
		t.Errorf("the knob is %s; trials saw %q; %v\n%s", got, seen, m.Count(), notes(m, "box"))
	}
}
