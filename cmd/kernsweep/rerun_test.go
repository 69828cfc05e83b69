package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

const rerunLab = `
target "ar2317" {
  arch = "mips"
  ssh { host = "192.0.2.1" }
  boot "command" { command = ["true"] }
}
target "other" {
  arch = "mips"
  ssh { host = "192.0.2.2" }
  boot "command" { command = ["true"] }
}
kernel "cfs" {
  image "mips" { kernel = "vmlinux" }
}
kernel "bfs" {
  image "mips" { kernel = "vmlinux" }
}
workload "exec" "up" {
  command = ["true"]
  metrics = { time = "time:elapsed" }
}
sweep "night" {
  kernels  = [kernel.cfs, kernel.bfs]
  baseline = kernel.cfs
  boots    = 3
  repeat   = 2
  matrix {
    targets   = [target.ar2317, target.other]
    workloads = [workload.exec.up]
  }
}
`

// judgedRun is a run whose controller said verdict of each slot; "" leaves it open.
func judgedRun(t *testing.T, verdict func(results.Slot) results.Outcome, more ...results.Record) (a *app, run *results.Run, errw *bytes.Buffer) {
	t.Helper()
	dir := t.TempDir()
	errw = new(bytes.Buffer)
	a = &app{out: errw, err: errw, env: os.LookupEnv, file: filepath.Join(dir, "lab.hcl"), runs: filepath.Join(dir, "runs")}
	for name, text := range map[string]string{"lab.hcl": rerunLab, "vmlinux": "a kernel"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lab, err := a.load()
	if err != nil {
		t.Fatal(err, errw)
	}
	p, err := plan.Expand(lab, lab.Sweeps[0], 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	if run, err = a.createRun(t.Context(), lab, p, nil); err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("me")
	if err != nil {
		t.Fatal(err)
	}
	records := []results.Record{{Kind: results.KindRun, Note: results.NoteBegan}}
	for _, l := range p.Lanes {
		records = append(records, results.Record{Kind: results.KindLane, Lane: l.Target, Note: results.NoteBegan})
		for _, b := range l.Boots {
			for _, s := range b.Trials {
				if o := verdict(s); o != "" {
					records = append(records, results.Record{Kind: results.KindStarted, Lane: l.Target, Slot: &s, Attempt: 1},
						results.Record{Kind: results.KindJudged, Lane: l.Target, Slot: &s, Attempt: 1, Outcome: o})
				}
			}
		}
	}
	for _, r := range append(records, more...) {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return a, run, errw
}

func (a *app) selected(t *testing.T, run *results.Run, r rerun) (*plan.Plan, error) {
	t.Helper()
	lab, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	r.run = run
	return a.selectRerun(lab, &r)
}

func TestRerunSaysWhatItCosts(t *testing.T) {
	a, run, errw := judgedRun(t, func(s results.Slot) results.Outcome {
		if s.Target == "ar2317" && s.Kernel == "bfs" && s.Block > 1 && s.Repeat == 1 {
			return results.Failed
		}
		return results.OK
	}, results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	for _, tt := range []struct {
		r      rerun
		trials int
		text   string
	}{
		{rerun{failed: true}, 8, "repeats 2 whole blocks of ar2317 (8 trials, about "},
		{rerun{failed: true}, 8, " as session 2; --only-failed-cells repeats 2 trials, but compares kernels of different days\n"},
		{rerun{alone: true}, 2, "repeats 2 trials of ar2317 (about "},
		{rerun{alone: true}, 2, " as session 2, and compares kernels of different days; without --only-failed-cells it is 2 whole blocks (8 trials, about "},
		{rerun{Filter: plan.Filter{Targets: []string{"other"}}}, 12, "repeats 3 whole blocks of other (12 trials, about "},
		{rerun{}, 24, "repeats 3 whole blocks of ar2317 (12 trials"},
	} {
		errw.Reset()
		p, err := a.selected(t, run, tt.r)
		if err != nil || !strings.Contains(errw.String(), tt.text) || strings.Contains(errw.String(), "did not come to its end") {
			t.Errorf("%+v: %v, %s", tt.r, err, errw)
			continue
		}
		n := 0
		for _, l := range p.Lanes {
			n += l.Measured()
		}
		if n != tt.trials {
			t.Errorf("%+v: %d trials", tt.r, n)
		}
	}
	if _, err := a.selected(t, run, rerun{failed: true, Filter: plan.Filter{Targets: []string{"other"}}}); err == nil || !strings.Contains(err.Error(), "nothing to do") {
		t.Errorf("nothing failed there: %v", err)
	}
}

// What --until left out is no failure, and a run that was cut off is resumed.
func TestRerunLeavesToResume(t *testing.T) {
	verdict := func(s results.Slot) results.Outcome {
		switch {
		case s.Target == "ar2317" && s.Block >= 2:
			return ""
		case s.Target == "ar2317" && s.Kernel == "bfs":
			return results.Lost
		}
		return results.OK
	}
	a, run, errw := judgedRun(t, verdict, results.Record{Kind: results.KindCut, Lane: "ar2317", Cut: &results.Cut{Until: time.Now(), Block: 2, Trials: 8}},
		results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	p, err := a.selected(t, run, rerun{failed: true})
	if err != nil || len(p.Lanes) != 1 || p.Lanes[0].Rounds() != 1 || !strings.Contains(errw.String(), "left out for --until, and measured by kernsweep resume "+run.Name()+": 8 trials") {
		t.Errorf("%v, %+v, %s", err, p, errw)
	}
	a, run, errw = judgedRun(t, verdict)
	p, err = a.selected(t, run, rerun{failed: true})
	if err != nil || p.Lanes[0].Rounds() != 3 || !strings.Contains(errw.String(), "did not come to its end: kernsweep resume "+run.Name()) {
		t.Errorf("%v, %+v, %s", err, p, errw)
	}
}

func TestRerunOfARunInUse(t *testing.T) {
	a, run, _ := judgedRun(t, func(results.Slot) results.Outcome { return results.Failed })
	w, err := run.OpenWriter("somebody")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var errs bytes.Buffer
	status := execute(t.Context(), []string{"-f", a.file, "--runs", a.runs, "rerun", "latest", "--failed"}, strings.NewReader(""), &errs, &errs, os.LookupEnv)
	if status != exitInfra || !strings.Contains(errs.String(), "is being written by somebody, process") {
		t.Errorf("status %d, %s", status, errs.String())
	}
}

// What a lane left out because it had enough is neither failed nor repeated.
func TestRerunOfALaneThatHadEnough(t *testing.T) {
	a, run, _ := judgedRun(t, func(s results.Slot) results.Outcome {
		switch {
		case s.Target == "ar2317" && s.Block == 3:
			return ""
		case s.Target == "ar2317" && s.Block == 2 && s.Kernel == "bfs":
			return results.Failed
		}
		return results.OK
	}, results.Record{Kind: results.KindEnough, Lane: "ar2317", Enough: &results.Enough{Blocks: 2, Widest: "x", Wanted: 0.01}},
		results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	for _, tt := range []struct {
		r      rerun
		blocks int
	}{{rerun{failed: true}, 1}, {rerun{Filter: plan.Filter{Targets: []string{"ar2317"}}}, 2}, {rerun{alone: true}, 1}, {rerun{more: 4}, 4}} {
		p, err := a.selected(t, run, tt.r)
		if err != nil || p.Lanes[0].Target != "ar2317" || p.Lanes[0].Rounds() != tt.blocks {
			t.Errorf("%+v: %v, %+v", tt.r, err, p)
		}
	}
	s, err := a.status("latest")
	if err != nil || s.Missing != 0 || !strings.HasPrefix(s.Lanes[0].Enough, "enough: 2 blocks, widest ±0 % (x)") || !strings.HasSuffix(s.Next, " --failed") {
		t.Errorf("%+v, %v", s, err)
	}
}

// Trials that were skipped, and that nobody needs any more, ask for nothing.
func TestStatusOfALaneThatHadEnough(t *testing.T) {
	a, _, _ := judgedRun(t, func(s results.Slot) results.Outcome {
		if s.Target == "ar2317" && s.Block == 3 {
			return results.Skipped
		}
		return results.OK
	}, results.Record{Kind: results.KindEnough, Lane: "ar2317", Enough: &results.Enough{Blocks: 2, Widest: "x", Wanted: 0.01}},
		results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	if s, err := a.status("latest"); err != nil || !strings.Contains(s.Next, " report ") {
		t.Errorf("%+v, %v", s, err)
	}
}

// What failed of the blocks that a later session added can be repeated too.
func TestRerunOfAddedBlocks(t *testing.T) {
	a, run, _ := judgedRun(t, func(results.Slot) results.Outcome { return results.OK }, results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	more, err := a.selected(t, run, rerun{more: 2, Filter: plan.Filter{Targets: []string{"other"}}})
	if err != nil || more.Lanes[0].Boots[0].Block != 4 {
		t.Fatal(err)
	}
	if err := run.WriteSessionPlan(2, more); err != nil {
		t.Fatal(err)
	}
	if s, err := a.status("latest"); err != nil || s.Missing != 0 {
		t.Errorf("a session that never began adds something: %+v, %v", s, err)
	}
	w, err := run.OpenWriter("me")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []results.Record{{Kind: results.KindRun, Note: results.NoteBegan + ": rerun"},
		{Kind: results.KindJudged, Lane: "other", Slot: &more.Lanes[0].Boots[0].Trials[1], Attempt: 1, Outcome: results.Failed, Reason: "it broke"},
		{Kind: results.KindRun, Note: results.NoteEnded}} {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := a.status("latest"); err != nil || s.Missing != 7 {
		t.Errorf("%d of the 8 added trials are not tried, %v", s.Missing, err)
	}
	p, err := a.selected(t, run, rerun{failed: true})
	if err != nil || len(p.Lanes) != 1 || p.Lanes[0].Boots[0].Block != 4 || p.Lanes[0].Rounds() != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = a.selected(t, run, rerun{more: 1, Filter: plan.Filter{Kernels: []string{"bfs"}}}); err != nil || len(p.Lanes) != 2 ||
		p.Lanes[0].Boots[0].Block != 6 || p.Lanes[1].Boots[0].Block != 6 || len(p.Lanes[1].Boots) != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}
