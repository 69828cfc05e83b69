package orchestrator

import (
	"slices"
	"testing"

	"kernsweep/workloads/wire"
)

// The scheduler's own account is told where both looks at it can be compared, and
// missing by name elsewhere.
func TestTheSchedulersOwnAccount(t *testing.T) {
	const before, after = "version 15\ncpu0 0 0 0 0 0 0 1 1000000 10", "version 15\ncpu0 0 0 0 0 0 0 9 41000000 210"
	look := func(ns int64, text string) wire.State {
		return wire.State{MonoNS: ns, Files: map[string]string{"/proc/schedstat": text}}
	}
	for what, states := range map[string][]wire.State{
		"both":         {look(1e9, before), look(5e9, after)},
		"one":          {look(1e9, before)},
		"none":         nil,
		"no file":      {look(1e9, ""), look(5e9, "")},
		"fell":         {look(1e9, after), look(5e9, before)},
		"no time":      {look(1e9, before), look(1e9, after)},
		"another CPU":  {look(1e9, before), look(5e9, after+"\ncpu1 0 0 0 0 0 0 9 9 9")},
		"ticks, 2.6.9": {look(1e9, "version 10\ncpu0 1 2 3"), look(5e9, "version 10\ncpu0 4 5 6")},
	} {
		a := activity(&wire.Spool{States: states, Snapshots: []wire.Snapshot{
			{MonoNS: 1e9, Stat: []byte("cpu 0 0 0 0\nctxt 1\n")}, {MonoNS: 5e9, Stat: []byte("cpu 1 1 1 1\nctxt 9\n")}}})
		if a == nil || a.Switches != 2 {
			t.Fatalf("%s: %+v", what, a)
		}
		missing := slices.Contains(a.Missing, "run_delay") && slices.Contains(a.Missing, "timeslices")
		told := a.RunDelay != nil && a.Timeslices != nil && *a.RunDelay == 10 && *a.Timeslices == 50
		if told != (what == "both") || missing == told || (a.RunDelay == nil) != missing {
			t.Errorf("%s: %+v", what, a)
		}
	}
	if activity(nil) != nil || activity(&wire.Spool{}) != nil {
		t.Error("a summary of nothing")
	}
}
