package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// fillText puts text into every plain string below v that is empty: a field that
// is added later is hostile by itself.
func fillText(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fillText(v.Elem(), text)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type() != reflect.TypeFor[time.Time]() {
				fillText(v.Field(i), text)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 && v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			fillText(v.Index(i), text)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]string]() && v.Len() == 0 {
			v.Set(reflect.ValueOf(map[string]string{text: text}))
		}
	case reflect.String:
		if v.String() == "" && v.Type().PkgPath() == "" {
			v.SetString(text)
		}
	}
}

// hostileRun writes a run whose every text is hostile: with hostile names of
// targets, kernels, workloads and metrics too where names is set, as a copied
// folder may have them.
func hostileRun(t testing.TB, runs, folder string, names bool) *results.Run {
	t.Helper()
	name := func(s string) string {
		if names {
			return s + hostile
		}
		return s
	}
	target, good, bad, work, scenario := name("box"), name("cfs"), name("bfs"), "exec."+name("work"), name("default")
	meta := results.RunMeta{Sweep: name("night"), Config: filepath.Join(runs, hostile)}
	fillText(reflect.ValueOf(&meta).Elem(), hostile)
	meta.ID, meta.Name, meta.PlanHash = "", "", ""
	meta.Sweep = "night" // of the folder
	run, err := results.Create(runs, "night", meta, time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	metric := workloads.Metric{Name: name("rate"), Unit: name("u"), Better: workloads.HigherIsBetter, Primary: true}
	cell := func(k string) results.Cell {
		return results.Cell{Target: target, Kernel: k, Workload: work, Scenario: scenario}
	}
	plan := results.PlanSummary{Sweep: name("night"), Targets: []results.PlannedTarget{{Name: target, Boots: 2, KnownGood: good, Clock: "-"}}, Kernels: []results.PlannedKernel{{Name: good}, {Name: bad}},
		Cells:   []results.PlannedCell{{Cell: cell(good), Baseline: good, Boots: 1, Repeat: 1, NA: "-"}, {Cell: cell(bad), Baseline: good, Boots: 1, Repeat: 1, NA: "-"}},
		Metrics: map[string][]workloads.Metric{work + "." + scenario: {metric}}}
	plan.Cells[0].NA, plan.Cells[1].NA = "", ""
	fillText(reflect.ValueOf(&plan.Targets[0]).Elem(), hostile)
	var file []byte
	seq, laneSeq := 0, 0
	add := func(r results.Record) {
		seq++
		r.Seq, r.Run, r.At = seq, run.Meta.ID, time.Now().Add(-time.Hour+time.Duration(seq)*time.Second)
		if r.Lane == "" {
			laneSeq++
			r.Lane, r.LaneSeq = target, laneSeq
		}
		fillText(reflect.ValueOf(&r).Elem(), hostile)
		if r.Lane == "-" {
			r.Lane = ""
		}
		b, err := results.EncodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	began, ended := results.NoteBegan+": "+hostile, results.NoteEnded+": "+hostile
	add(results.Record{Kind: results.KindRun, Lane: "-", Note: began})
	add(results.Record{Kind: results.KindLane, Note: began})
	add(results.Record{Kind: results.KindNote})
	add(results.Record{Kind: results.KindNote, Lane: "-"})
	for i, k := range []string{good, bad} {
		slot := results.Slot{Cell: cell(k), Block: 1, Repeat: 1, Boot: i + 1}
		boot := &results.Boot{Number: i + 1, Kernel: k, Block: 1, Outcome: results.OK, Record: targets.BootRecord{Kernel: k, Identity: &targets.Identity{}}}
		if i == 1 {
			boot.Outcome = results.BootFailed
		}
		ahead := &results.Boot{Number: i + 1, Kernel: k, Block: 1}
		add(results.Record{Kind: results.KindPhase, Phase: "asked", Boot: ahead})
		add(results.Record{Kind: results.KindBoot, Boot: boot})
		dir, err := run.NewBootDir(target, i+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"console.log", "dmesg.txt", hostileFile} {
			spoil(t, filepath.Join(dir, f), hostile)
		}
		for n, outcome := range []results.Outcome{results.OK, results.Failed, results.Lost, results.Invalid, results.Skipped} {
			value := workloads.Value{Metric: metric, Value: 5, Missing: "-"}
			value.Missing = ""
			parsed := &workloads.Parsed{Values: []workloads.Value{value}}
			if outcome != results.OK {
				parsed.Values[0].Missing = hostile
			}
			s := slot
			s.Repeat = n + 1
			if n > 0 && outcome != results.Skipped {
				s.Repeat = 1
			}
			add(results.Record{Kind: results.KindStarted, Slot: &s, Attempt: n + 1})
			add(results.Record{Kind: results.KindTask, Slot: &s, Attempt: n + 1, Task: &results.Task{}})
			add(results.Record{Kind: results.KindKnob, Slot: &s, Knob: &results.KnobChange{}})
			add(results.Record{Kind: results.KindEnded, Slot: &s, Attempt: n + 1, Outcome: outcome})
			finding := results.Finding{}
			act := &results.Activity{Samples: 1, Seconds: 1}
			add(results.Record{Kind: results.KindJudged, Slot: &s, Attempt: n + 1, Outcome: outcome, Parsed: parsed, Summary: act, Peer: act, Findings: []results.Finding{finding}})
			dir, err := run.NewTrialDir(s, n+1)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []string{"stdout", "stderr", "vmstat.csv", hostileFile} {
				spoil(t, filepath.Join(dir, f), hostile)
			}
		}
	}
	add(results.Record{Kind: results.KindCut, Cut: &results.Cut{Until: time.Now(), Block: 1, Trials: 1}})
	add(results.Record{Kind: results.KindEnough, Enough: &results.Enough{Blocks: 1}})
	add(results.Record{Kind: results.KindLane, Note: results.NoteQuarantined, Reason: hostile})
	add(results.Record{Kind: results.KindRun, Lane: "-", Note: ended})
	if err := errors.Join(run.WritePlan(plan, nil), os.WriteFile(filepath.Join(run.Dir(), "journal.jsonl"), file, 0o644)); err != nil {
		t.Fatal(err)
	}
	spoil(t, filepath.Join(run.Dir(), hostileFile), hostile)
	if names {
		path := filepath.Join(run.Dir(), "run.json")
		b, err := os.ReadFile(path)
		if err == nil {
			text, _ := json.Marshal(hostile) // a string always has JSON
			err = os.WriteFile(path, bytes.Replace(b, []byte(`"sweep": "night"`), append([]byte(`"sweep": `), text...), 1), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if folder != "" {
		to := filepath.Join(runs, run.Name()+folder)
		if err := os.Rename(run.Dir(), to); err != nil {
			t.Fatal(err)
		}
		if run, err = results.Open(to); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := run.State(); err != nil || len(s.Journal.Notes) > 0 || len(s.Journal.Records) != seq {
		t.Fatalf("the journal is not believed: %v %q", err, s.Journal.Notes)
	}
	return run
}

// hostileFile is hostile as far as the name of a file can be.
var hostileFile = strings.ReplaceAll(hostile[:220], "/", "")

func spoil(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text+"\n"+strings.Repeat("x", 10_000)+"\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
}
