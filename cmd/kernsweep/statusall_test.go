package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

func TestClockAndLength(t *testing.T) {
	now := time.Date(2026, 12, 1, 8, 0, 0, 0, time.Local) // a Tuesday
	for want, at := range map[string]time.Time{
		"06:41":           now.Add(-79 * time.Minute),
		"yesterday 23:59": now.Add(-8*time.Hour - time.Minute),
		"Sun 08:00":       now.AddDate(0, 0, -2),
		"2026-11-20":      now.AddDate(0, 0, -11),
		"2026-12-02":      now.AddDate(0, 0, 1),
	} {
		if got := clock(at, now); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
	for want, d := range map[string]time.Duration{"0 s": 0, "59 s": 59 * time.Second, "6 m 40 s": 400 * time.Second,
		"7 h 12 m": 7*time.Hour + 12*time.Minute + 29*time.Second, "3 d 1 h": 73 * time.Hour} {
		if got := length(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// hundred runs, each with more to say than there is room for.
func crowd(n int) []runStatus {
	var list []runStatus
	for i := range n {
		s := runStatus{Run: fmt.Sprintf("20261130T2200%02dZ-sweep%d-00%02d", i, i, i), State: "ended", call: "kernsweep",
			Outcomes: map[results.Outcome]int{results.OK: 4, results.Failed: 2}, Ended: time.Now(), Verdict: "bfs faster on 3"}
		s.Short = results.Short(s.Run)
		s.name = s.Short
		for k := range 9 {
			s.Needs = append(s.Needs, report.Need{Target: "box", What: fmt.Sprintf("thing %d \x1b[2J\u202e", k), Cause: strings.Repeat("long ", 100), Command: "kernsweep log box"})
		}
		list = append(list, s)
	}
	return list
}

// What there is to say fits on the screen, and nothing of it drives the terminal.
func TestStatusFitsOneScreen(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 24}, {200, 60}} {
		p := &page{width: size[0], height: size[1], now: time.Now()}
		lines := p.fit(crowd(mostRuns), 2)
		if len(lines) > size[1]-3 {
			t.Errorf("%v: %d lines:\n%s", size, len(lines), strings.Join(lines, "\n"))
		}
		for _, l := range lines {
			if n := len([]rune(l)); n > size[0] && !strings.Contains(l, "→") {
				t.Errorf("%v: %d columns: %s", size, n, l)
			}
			if strings.ContainsAny(l, "\x1b\u202e") {
				t.Errorf("not inert: %q", l)
			}
		}
		if got := strings.Join(lines, "\n"); !strings.Contains(got, " more") || !strings.Contains(got, "sweep9-0009  ended") {
			t.Errorf("%v:\n%s", size, got)
		}
	}
}

// Older runs are a count; a run is named by the folder it is in.
func TestStatusOfManyRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	config := filepath.Join("labs", "desk lab.hcl")
	if err := os.MkdirAll("labs", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	abs, err := filepath.Abs(config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 13 {
		if _, err := results.Create("runs", "many", results.RunMeta{Config: abs}, time.Now().Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	say := func(args ...string) string {
		t.Helper()
		var out, errw bytes.Buffer
		if s := execute(t.Context(), append([]string{"status"}, args...), strings.NewReader(""), &out, &errw, os.LookupEnv); s != 0 {
			t.Fatalf("status %d: %s", s, errw.String())
		}
		return out.String()
	}
	got := say()
	if strings.Count(got, "  not begun") != mostRuns || !strings.Contains(got, "3 older runs  → kernsweep status --all") {
		t.Errorf("%s", got)
	}
	if !strings.Contains(got, "→ kernsweep -f 'labs/desk lab.hcl' resume latest") {
		t.Errorf("another configuration is not named:\n%s", got)
	}
	if all := say("--all"); strings.Count(all, "  not begun") != 13 || strings.Contains(all, "older") {
		t.Errorf("%s", all)
	}
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if got := say("latest"); !strings.Contains(got, "→ kernsweep resume latest") {
		t.Errorf("a configuration that is gone is named:\n%s", got)
	}
}
