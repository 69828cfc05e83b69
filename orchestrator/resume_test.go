package orchestrator

import (
	"fmt"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// script makes a journal's records for one lane "t" and kernels "a", "b".
type script struct {
	recs []results.Record
}

func (s *script) add(r results.Record) *script {
	r.Seq = len(s.recs) + 1
	r.At = time.Date(2026, 11, 30, 22, 0, r.Seq, 0, time.UTC)
	s.recs = append(s.recs, r)
	return s
}

func (s *script) session() *script {
	s.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	return s.add(results.Record{Kind: results.KindLane, Lane: "t", Note: results.NoteBegan})
}

func (s *script) end(note string) *script {
	s.add(results.Record{Kind: results.KindLane, Lane: "t", Note: note})
	return s.add(results.Record{Kind: results.KindRun, Note: note})
}

func (s *script) boot(n, block int, kernel string, o results.Outcome) *script {
	b := &results.Boot{Number: n, Block: block, Kernel: kernel, Outcome: o, Stage: "panic", Reason: "not syncing"}
	b.Record.BootID = fmt.Sprintf("%08d-0000-4000-8000-000000000000", n)
	s.add(results.Record{Kind: results.KindPhase, Lane: "t", Phase: targets.PhaseAsked, Boot: &results.Boot{Number: n, Block: block, Kernel: kernel}})
	if o == "" {
		return s
	}
	return s.add(results.Record{Kind: results.KindBoot, Lane: "t", Outcome: o, Boot: b})
}

func at(kernel string, block, repeat, boot int) results.Slot {
	return results.Slot{Cell: results.Cell{Target: "t", Kernel: kernel, Workload: "exec.x", Scenario: "default"}, Block: block, Repeat: repeat, Boot: boot}
}

func (s *script) trial(slot results.Slot, attempt int, o results.Outcome) *script {
	s.add(results.Record{Kind: results.KindStarted, Lane: "t", Slot: &slot, Attempt: attempt})
	if o == "" {
		return s
	}
	return s.add(results.Record{Kind: results.KindJudged, Lane: "t", Slot: &slot, Attempt: attempt, Outcome: o, Reason: "because"})
}

// twoBlocks is a plan of kernels a and b in two blocks, a warm-up and two repeats each.
func twoBlocks() *plan.Plan {
	l := plan.Lane{Target: "t"}
	for block := 1; block <= 2; block++ {
		for _, k := range []string{"a", "b"} {
			b := plan.Boot{Number: len(l.Boots) + 1, Block: block, Kernel: k}
			for r := 0; r <= 2; r++ {
				b.Trials = append(b.Trials, at(k, block, r, b.Number))
			}
			l.Boots = append(l.Boots, b)
		}
	}
	return &plan.Plan{Lanes: []plan.Lane{l}}
}

// shape is "block kernel: repeats" of every boot that remains.
func shape(p *plan.Plan) []string {
	var out []string
	for _, l := range p.Lanes {
		out = append(out, l.Target)
		for _, b := range l.Boots {
			s := fmt.Sprintf("%d%s:", b.Block, b.Kernel)
			for _, t := range b.Trials {
				s += fmt.Sprintf(" %d", t.Repeat)
			}
			out = append(out, s)
		}
	}
	return out
}

func TestRemaining(t *testing.T) {
	lab := &config.Lab{Targets: []*config.Target{{Target: targets.Target{Name: "t"}, Failures: config.Failures{Retries: 1}}}}
	full := func(s *script, n, block int, k string) *script {
		s.boot(n, block, k, results.OK)
		for r := 0; r <= 2; r++ {
			s.trial(at(k, block, r, n), 1, results.OK)
		}
		return s
	}
	done := func() *script {
		s := new(script).session()
		full(s, 1, 1, "a")
		full(s, 2, 1, "b")
		full(s, 3, 2, "a")
		return full(s, 4, 2, "b")
	}
	for name, c := range map[string]struct {
		s    *script
		want []string
	}{
		"nothing recorded": {new(script), []string{"t", "1a: 0 1 2", "1b: 0 1 2", "2a: 0 1 2", "2b: 0 1 2"}},
		"all done":         {done().end(results.NoteEnded), nil},
		"all done but the lane's end, so the target is not at home": {done(), []string{"t"}},
		"stopped in a trial":                         {full(new(script).session(), 1, 1, "a").boot(2, 1, "b", results.OK).trial(at("b", 1, 0, 2), 1, results.OK).trial(at("b", 1, 1, 2), 1, ""), []string{"t", "1b: 0 1 2", "2a: 0 1 2", "2b: 0 1 2"}},
		"a repeat is done, its warm-up is due again": {full(new(script).session(), 1, 1, "a").boot(2, 1, "b", results.OK).trial(at("b", 1, 0, 2), 1, results.OK).trial(at("b", 1, 1, 2), 1, results.OK), []string{"t", "1b: 0 2", "2a: 0 1 2", "2b: 0 1 2"}},
		"interrupted by hand":                        {full(new(script).session(), 1, 1, "a").boot(2, 1, "b", results.OK).trial(at("b", 1, 1, 2), 1, results.Interrupted).end(results.NoteInterrupted), []string{"t", "1b: 0 1 2", "2a: 0 1 2", "2b: 0 1 2"}},
		"what failed has its verdict":                {full(full(full(new(script).session(), 1, 1, "a"), 2, 1, "b"), 3, 2, "a").boot(4, 2, "b", results.OK).trial(at("b", 2, 1, 4), 1, results.Failed).trial(at("b", 2, 2, 4), 1, results.Skipped).end(results.NoteEnded), nil},
		"a lost link has its other attempt":          {full(full(full(new(script).session(), 1, 1, "a"), 2, 1, "b"), 3, 2, "a").boot(4, 2, "b", results.OK).trial(at("b", 2, 1, 4), 1, results.Lost).trial(at("b", 2, 2, 4), 1, results.OK), []string{"t", "2b: 0 1"}},
		"it had it":                                  {full(full(full(new(script).session(), 1, 1, "a"), 2, 1, "b"), 3, 2, "a").boot(4, 2, "b", results.OK).trial(at("b", 2, 1, 4), 1, results.Lost).trial(at("b", 2, 1, 4), 2, results.Lost).trial(at("b", 2, 2, 4), 1, results.OK), []string{"t"}},
		"a lost one of a lane that ended is final":   {full(full(full(new(script).session(), 1, 1, "a"), 2, 1, "b"), 3, 2, "a").boot(4, 2, "b", results.OK).trial(at("b", 2, 1, 4), 1, results.Lost).trial(at("b", 2, 2, 4), 1, results.OK).end(results.NoteEnded), nil},
		"interrupted, and then its target was given up": {full(full(full(new(script).session(), 1, 1, "a"), 2, 1, "b"), 3, 2, "a").boot(4, 2, "b", results.OK).trial(at("b", 2, 1, 4), 1, "").session().
			trial(at("b", 2, 1, 0), 2, results.Skipped).trial(at("b", 2, 2, 0), 1, results.Skipped).end(results.NoteQuarantined), nil},
		"an older valid attempt is not to be had anew": {done().session().boot(5, 1, "a", results.OK).trial(at("a", 1, 1, 5), 2, ""), []string{"t"}},
	} {
		got := shape(Remaining(lab, twoBlocks(), results.Load(c.s.recs), Rerun{}))
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
