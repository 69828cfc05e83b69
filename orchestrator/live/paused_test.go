package live

import (
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// A pause keeps its state while what runs ends, costs no pace, and ends with it;
// what a person skipped is counted apart.
func TestPausedLane(t *testing.T) {
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	tr := NewTracker(at, []Lane{{Name: "box", Boots: 2, Trials: 4, Estimate: 40 * time.Minute}})
	observe := func(minute int, r results.Record) {
		r.Lane, r.At = "box", at.Add(time.Duration(minute)*time.Minute)
		if r.Kind == results.KindRun {
			r.Lane = ""
		}
		tr.Observe(r)
	}
	slot := func(n int) *results.Slot {
		return &results.Slot{Cell: results.Cell{Target: "box", Kernel: "a", Workload: "w", Scenario: "default"}, Block: 1, Repeat: n}
	}
	lane := func(minute int) LaneView {
		return tr.View(at.Add(time.Duration(minute)*time.Minute), true).Lanes[0]
	}
	observe(0, results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	observe(0, results.Record{Kind: results.KindLane, Note: results.NoteBegan})
	observe(1, results.Record{Kind: results.KindStarted, Slot: slot(1)})
	observe(5, results.Record{Kind: results.KindLane, Note: results.NotePaused, Reason: "by ada, kernsweep watch: lunch"})
	observe(10, results.Record{Kind: results.KindJudged, Slot: slot(1), Outcome: results.OK})
	observe(11, results.Record{Kind: results.KindPhase, Phase: "down", Boot: &results.Boot{Kernel: "b", Number: 2}})
	if l := lane(70); l.State != Paused || l.Reason != "by ada, kernsweep watch: lunch" || l.LeftS == nil || *l.LeftS > 40*60 {
		t.Errorf("%+v, left %v", l, *l.LeftS)
	}
	observe(65, results.Record{Kind: results.KindLane, Note: results.NoteGoesOn, Reason: "by ada"})
	if l := lane(65); l.State != Running || l.Reason != "" || *l.LeftS < 20*60 || *l.LeftS > 40*60 {
		t.Errorf("%+v, left %v", l, *l.LeftS)
	}
	observe(66, results.Record{Kind: results.KindStarted, Slot: slot(2)})
	observe(67, results.Record{Kind: results.KindJudged, Slot: slot(2), Outcome: results.Skipped, Reason: "skipped by ada: it hangs"})
	observe(67, results.Record{Kind: results.KindJudged, Slot: slot(3), Outcome: results.Skipped, Reason: "kernel a failed 2 times"})
	if l := lane(67); l.Outcomes[results.SkippedByHand] != 1 || l.Outcomes[results.Skipped] != 1 || l.Doing != "between trials" {
		t.Errorf("%+v", l)
	}
	observe(68, results.Record{Kind: results.KindLane, Note: results.NoteGivenUp, Reason: "skipped by ada (target box)"})
	if l := lane(68); l.State != Quarantined || l.Reason == "" {
		t.Errorf("%+v", l)
	}
	observe(69, results.Record{Kind: results.KindLane, Note: results.NotePaused, Reason: "by ada"})
	observe(80, results.Record{Kind: results.KindRun, Note: results.NoteBegan + ": resume"})
	if l := lane(80); l.State != Waiting || l.Reason != "" {
		t.Errorf("after its controller died: %+v", l)
	}
}
