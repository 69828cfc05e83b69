package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// measured makes a run of one kernel and workload with a proven boot for each value.
func measured(t *testing.T, runs string, at time.Time, values ...float64) string {
	t.Helper()
	run, err := results.Create(runs, "night", results.RunMeta{Version: "0.5"}, at)
	if err != nil {
		t.Fatal(err)
	}
	m := workloads.Metric{Name: "throughput", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	c := results.Cell{Target: "desk", Kernel: "bfs", Workload: "iperf.to", Scenario: "default"}
	p := results.PlanSummary{Sweep: "night", Targets: []results.PlannedTarget{{Name: "desk", Boot: "grub"}},
		Cells: []results.PlannedCell{{Cell: c, Baseline: "bfs", Boots: len(values), Repeat: 1}}, Metrics: map[string][]workloads.Metric{"iperf.to.default": {m}}}
	if err := run.WritePlan(p, nil); err != nil {
		t.Fatal(err)
	}
	var file []byte
	n := 0
	add := func(r results.Record) {
		n++
		r.Seq, r.LaneSeq, r.Run, r.Lane, r.At = n, n, run.Meta.ID, "desk", at.Add(time.Duration(n)*time.Minute)
		b, err := results.EncodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	for i, v := range values {
		add(results.Record{Kind: results.KindBoot, Boot: &results.Boot{Number: i + 1, Kernel: "bfs", Block: i + 1, Outcome: results.OK,
			Record: targets.BootRecord{Kernel: "bfs", Proven: true, BootID: fmt.Sprint(run.Meta.ID, i)}}})
		s := results.Slot{Cell: c, Block: i + 1, Boot: i + 1, Repeat: 1}
		add(results.Record{Kind: results.KindJudged, Slot: &s, Attempt: 1, Outcome: results.OK, Parsed: &workloads.Parsed{Values: []workloads.Value{{Metric: m, Value: v}}}})
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), "journal.jsonl"), file, 0o644); err != nil {
		t.Fatal(err)
	}
	return run.Name()
}

// TestCompareSaysItByItsStatus: 0, 1, 2 and 4 as the answer is.
func TestCompareSaysItByItsStatus(t *testing.T) {
	runs := t.TempDir()
	at := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
	good := measured(t, runs, at, 100, 100.2, 99.9, 100.1, 100)
	same := measured(t, runs, at.Add(24*time.Hour), 100.1, 100, 99.9, 100.2, 100)
	slow := measured(t, runs, at.Add(48*time.Hour), 90, 90.2, 89.9, 90.1, 90)
	few := measured(t, runs, at.Add(72*time.Hour), 90, 90.2)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{good, same}, 0, "desk bfs iperf.to.default throughput: same within 1 %"},
		{[]string{good, slow}, 1, "slower: -10.0 %"},
		{[]string{slow, good}, 0, "faster: +11.1 %"},
		{[]string{good, few}, 4, "kernsweep --runs " + runs + " rerun " + few + " --more"},
		{[]string{good, slow, "--target", "nobody"}, 2, ""},
		{[]string{slow, "--history", "9"}, 0, "run 3  " + slow},
		{[]string{good, slow, "--history", "9"}, 1, "3 runs of 3"},
	} {
		var out, errw bytes.Buffer
		status := execute(t.Context(), append([]string{"--runs", runs, "compare"}, c.args...), strings.NewReader(""), &out, &errw, func(string) (string, bool) { return "", false })
		if status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("compare %q: status %d, want %d with %q:\n%s%s", c.args, status, c.status, c.want, out.String(), errw.String())
		}
	}
}
