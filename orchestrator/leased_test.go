package orchestrator

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/targets/localconn"
	"kernsweep/workloads"
)

// steal makes the lease of a target somebody else's, as a process does that took
// it over while this one was stopped, and returns the file and what is in it.
func steal(t *testing.T, folder, target string) (path, body string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*named*"+target+"%20at*.lease"))
	if err != nil || len(files) != 1 {
		t.Fatalf("leases of %s: %v, %v", target, files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var lease map[string]any
	if err := json.Unmarshal(b, &lease); err != nil {
		t.Fatal(err)
	}
	holder := lease["holder"].(map[string]any)
	holder["id"], holder["owner"], holder["run"] = "another", "bob", "bobs-run"
	if b, err = json.Marshal(lease); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0]+".new", b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(files[0]+".new", files[0]); err != nil {
		t.Fatal(err)
	}
	return files[0], string(b)
}

// A lane whose target was taken over ends before it touches it again, says who has
// it, and leaves the other's lease alone; the other lanes go on.
func TestLaneWhoseLeaseIsTakenOver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	var path, body string
	work := &echo{value: 1}
	f := newFakeLab(t, map[string]workloads.Workload{"default": work})
	second := newMachine(t)
	f.lab.Targets = append(f.lab.Targets, &config.Target{Target: targets.Target{Name: "other", Arch: runtime.GOARCH, Boot: second,
		SSH: targets.SSH{Host: "127.0.0.1", Port: 2}, Timeout: targets.Timeouts{Boot: 10 * time.Second}}, BootKind: "fake", Agent: "auto", Scale: 1, Quarantine: 2})
	f.others = map[string]*machine{"127.0.0.1": second}
	f.lab.Sweeps[0].Matrices[0].Targets = []string{"box", "other"}
	p := planOf(t, f)
	claimed, err := Claim(t.Context(), claimer(folder, "alice"), f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	run, err := results.Create(t.TempDir(), p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := claimed.SetRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("alice")
	if err != nil {
		t.Fatal(err)
	}
	boots := 0
	r := &Runner{Lab: f.lab, Plan: p, Run: run, Journal: w, Before: &results.Model{}, Dial: f.dial, Local: localconn.New(), Log: zap.NewNop(), Leases: claimed,
		Observe: func(rec results.Record) {
			if rec.Lane == "box" && rec.Kind == results.KindJudged && path == "" {
				boots = len(f.m.boots)
				path, body = steal(t, folder, "box")
			}
		}}
	if err := r.Execute(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.m.boots); n != boots {
		t.Errorf("booted %d times after it was taken over", n-boots)
	}
	lane := map[string]results.Record{}
	notes := ""
	for _, rec := range state.Journal.Records {
		if rec.Kind == results.KindLane {
			lane[rec.Lane] = rec
		}
		notes += rec.Note + "\n"
	}
	if l := lane["box"]; l.Note != results.NoteInterrupted || !strings.Contains(l.Reason, "target box: its lease was taken over by bob (process ") {
		t.Errorf("the lane ended with %q: %q", l.Note, l.Reason)
	}
	if !strings.Contains(notes, "left as it is, without restoring anything") {
		t.Error(notes)
	}
	if l := lane["other"]; l.Note != results.NoteEnded {
		t.Errorf("the other lane ended with %q: %q", l.Note, l.Reason)
	}
	if n := count(state.Model); n[results.OK] != 5 {
		t.Errorf("outcomes %v, want 4 ok of the other and 1 of this", n)
	}
	if err := claimed.Release(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != body {
		t.Errorf("the other's lease is now %s, %v", b, err)
	}
	if list, err := leases.List(folder); err != nil || len(list) != 1 || list[0].Owner != "bob" {
		t.Errorf("%v, %v", list, err)
	}
}

// In the middle of a trial the takeover is noticed by the renewal.
func TestTrialUnderWhichTheLeaseIsTakenOver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	work := &echo{}
	f := newFakeLab(t, map[string]workloads.Workload{"default": work})
	p := planOf(t, f)
	claimed, err := Claim(t.Context(), claimer(folder, "alice"), f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	work.run = func(ctx context.Context, _ *workloads.Env) error {
		steal(t, folder, "box")
		<-ctx.Done() // by the next renewal
		return context.Cause(ctx)
	}
	run, err := results.Create(t.TempDir(), p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("alice")
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Lab: f.lab, Plan: p, Run: run, Journal: w, Before: &results.Model{}, Dial: f.dial, Local: localconn.New(), Log: zap.NewNop(), Leases: claimed}
	if err := r.Execute(t.Context()); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	n, reason := count(state.Model), ""
	for _, rec := range state.Journal.Records {
		if rec.Kind == results.KindJudged {
			reason = rec.Reason
		}
	}
	if n[results.Interrupted] != 1 || n[results.OK] != 0 || !strings.Contains(reason, "taken over by bob") {
		t.Errorf("outcomes %v: %s", n, reason)
	}
	if err := claimed.Release(); err != nil {
		t.Error(err)
	}
}
