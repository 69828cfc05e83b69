package web

import (
	"maps"

	"kernsweep/orchestrator/results"
)

// tally counts trials by target, kernel and outcome, as live.Tracker does by
// target: a slot once, by its newest outcome, but ok stays ok.
type tally struct {
	slots  map[results.SlotKey]results.Outcome
	counts map[tallyKey]int
}

type tallyKey struct {
	target, kernel string
	outcome        results.Outcome
}

func newTally() tally {
	return tally{slots: map[results.SlotKey]results.Outcome{}, counts: map[tallyKey]int{}}
}

func (t tally) add(rec results.Record) {
	if rec.Kind != results.KindJudged || rec.Slot == nil {
		return
	}
	k := rec.Slot.Key()
	old, seen := t.slots[k]
	if old == results.OK {
		return
	}
	count := tallyKey{k.Target, k.Kernel, rec.Outcome}
	if seen {
		t.counts[tallyKey{k.Target, k.Kernel, old}]--
	}
	t.slots[k] = rec.Outcome
	t.counts[count]++
}

func (t tally) totals() map[tallyKey]int {
	out := maps.Clone(t.counts)
	maps.DeleteFunc(out, func(_ tallyKey, n int) bool { return n == 0 })
	return out
}
