package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

// steady is a sweep whose values are the same in every boot, to four digits.
const steady = `
workload "exec" "steady" {
  command  = ["payload", "steady", "0.02001"]
  metrics  = { time = "regexp:^time: (\\S+)" }
  better   = { time = "lower" }
  units    = { time = "s" }
  duration = "1s"
  sample   = "0s"
}
sweep "steady" {
  kernels    = [kernel.%s, kernel.%s]
  boots      = "auto"
  half_width = "1%%"
  repeat     = 1
  warmup     = 0
  matrix {
    targets   = [target.%s]
    workloads = [workload.exec.steady]
  }
}
`

// state is that of the one run of a place.
func (p place) state(t *testing.T) (*results.Run, *results.State) {
	t.Helper()
	run := p.run(t)
	if run == nil {
		t.Fatal("there is no run")
	}
	s, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	return run, s
}

func notRun(s *results.State) int {
	n := 0
	for _, c := range s.Plan.Cells {
		n += s.NotRun(c)
	}
	return n
}

// must runs the program to its end.
func (n *night) must(t *testing.T, p place, args ...string) *process {
	t.Helper()
	c := n.start(t, p, args...)
	if status := c.wait(t); status != 0 {
		t.Fatalf("%v ends with status %d:\n%s", args, status, c.err.String())
	}
	return c
}

// TestDesign takes the built program over a fake lab: boots = "auto" that ends at
// its width, killed at that moment too; blocks added afterwards; a pilot; a noise
// floor.
func TestDesign(t *testing.T) {
	program := build(t)
	t.Run("pilot and noise floor", func(t *testing.T) {
		t.Parallel()
		pilotAndNoiseFloor(t, newSteady(t, program))
	})
	t.Run("auto", func(t *testing.T) {
		t.Parallel()
		autoKilledAndMore(t, newSteady(t, program))
	})
}

// newSteady is a night whose configuration has the sweep "steady".
func newSteady(t *testing.T, program string) *night {
	t.Helper()
	n := newNight(t, program, 1, 1, 1)
	f, err := os.OpenFile(n.file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, steady, targetstest.SimGood, targetstest.SimOther, n.lab.Machines[0].Name)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return n
}

func autoKilledAndMore(t *testing.T, n *night) {
	box := n.lab.Machines[0].Name
	p := newPlace(t)
	c := n.must(t, p, "run", "steady")
	run, s := p.state(t)
	if l := s.Model.Lane(box); l.Enough == nil || l.Enough.Blocks != 5 || notRun(s) != 0 || len(s.Model.Trials) != 10 {
		t.Fatalf("%+v, %d trials, %d not run\n%s", l, len(s.Model.Trials), notRun(s), c.err.String())
	}
	if !strings.Contains(c.err.String(), box+": enough: 5 blocks, widest ±") || strings.Contains(c.out.String()+c.err.String(), "not tried") {
		t.Error(c.err.String())
	}
	if out := n.must(t, p, "status", "latest").out.String(); !strings.Contains(out, "enough: 5 blocks, widest ±") || !strings.Contains(out, "10 ok\n") {
		t.Error(out)
	}
	if text := n.must(t, p, "resume", "latest").err.String(); !strings.Contains(text, "nothing to resume") {
		t.Error(text)
	}
	at := 0 // number of the record that ends the lane
	for i, r := range s.Journal.Records {
		if r.Kind == results.KindEnough {
			at = i + 1
		}
	}

	killed := newPlace(t)
	if k := n.start(t, killed, "run", "steady"); !k.killAt(killed, nightLimit, at) {
		t.Errorf("it was over before record %d", at)
	}
	n.must(t, killed, "resume", "latest")
	if _, s := killed.state(t); s.Model.Lane(box).Enough == nil || len(s.Model.Trials) != 10 || notRun(s) != 0 {
		t.Errorf("killed after %d records: %+v, %d trials", at, s.Model.Lane(box), len(s.Model.Trials))
	}

	c = n.must(t, p, "rerun", "latest", "--more", "2", "--target", box)
	if !strings.Contains(c.err.String(), "adds 2 blocks to "+box+" (4 boots, 4 trials, about ") {
		t.Error(c.err.String())
	}
	if _, s = p.state(t); len(s.Model.Trials) != 14 || notRun(s) != 0 || len(s.Model.Sessions) != 2 {
		t.Errorf("%d trials, %d not run", len(s.Model.Trials), notRun(s))
	}
	var doc struct {
		Judgement struct {
			Comparisons []struct{ Boots [2]int }
		}
	}
	if err := json.Unmarshal(n.must(t, p, "report", "latest", "--format", "json").out.Bytes(), &doc); err != nil || len(doc.Judgement.Comparisons) != 1 ||
		doc.Judgement.Comparisons[0].Boots != [2]int{7, 7} {
		t.Errorf("what was added does not enter: %+v, %v", doc, err)
	}
	for _, args := range []string{"rerun latest --more 2 --failed", "rerun latest --more 0 --target " + box, "rerun latest --more -1"} {
		if c := n.start(t, p, strings.Fields(args)...); c.wait(t) != exitUsage {
			t.Errorf("%s: %s", args, c.err.String())
		}
	}
	meta := run.Meta
	meta.Imported = &results.Import{}
	if err := run.SetMeta(meta); err != nil {
		t.Fatal(err)
	}
	if c := n.start(t, p, "rerun", "latest", "--more", "2"); c.wait(t) != exitUsage || !strings.Contains(c.err.String(), "was imported") {
		t.Error(c.err.String())
	}
}

func pilotAndNoiseFloor(t *testing.T, n *night) {
	box := n.lab.Machines[0].Name
	p := newPlace(t)
	n.must(t, p, "run", "steady", "--pilot")
	if out := n.must(t, p, "plan", "steady").out.String(); !strings.Contains(out, "Repeat and boots for ±1 %, now 1 and 5 to 15\n  exec.steady.") || !strings.Contains(out, "  for all of it: repeat = ") {
		t.Error(out)
	}
	q := newPlace(t)
	c := n.must(t, q, "run", "steady", "--noise-floor", "--boots", "4")
	_, s := q.state(t)
	if !s.Plan.Design.NoiseFloor || len(s.Plan.Kernels) != 1 || len(s.Model.Trials) != 8 || !strings.Contains(c.err.String(), "noise floor ±") {
		t.Errorf("%+v, %d trials\n%s", s.Plan.Design, len(s.Model.Trials), c.err.String())
	}
	if _, err := os.Stat(filepath.Join(q.runs, "noise", box+".json")); err != nil {
		t.Error(err)
	}
}
