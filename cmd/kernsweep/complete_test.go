package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// Names complete where they may stand, and nowhere else.
func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	lab := filepath.Join(dir, "lab.hcl")
	text := `
target "desk" { host = "192.0.2.1" }
kernel "cfs" {}
workload "crunch" "ltm" { parallel = 1 }
sweep "night" {
  kernels = [kernel.cfs]
  matrix {
    targets   = [target.desk]
    workloads = [workload.crunch.ltm]
  }
}
`
	if err := os.WriteFile(lab, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(dir, "runs")
	run, err := results.Create(runs, "night", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string][]string{
		"run ":                     {"night"},
		"plan ":                    {"night"},
		"run night ":               nil,
		"resume ":                  {"latest", run.Name()},
		"rerun ":                   {"latest", run.Name()},
		"rerun latest --target ":   {"desk"},
		"rerun latest --kernel ":   {"cfs"},
		"rerun latest --workload ": {"crunch.ltm"},
		"stop ":                    {"latest", run.Name()},
		"watch ":                   {"latest", run.Name()},
		"report ":                  {"latest", run.Name()},
		"boot ":                    {"desk", "all"},
		"boot desk ":               {"cfs", "desk", "all"},
		"power desk ":              {"on", "off", "cycle", "desk", "all"},
		"target doctor ":           {"desk"},
		"-f no-such-file.hcl run ": nil,
		"notify test ":             {"night"},
	} {
		var out, errw bytes.Buffer
		a := &app{out: &out, err: &errw, env: os.LookupEnv}
		root := a.root()
		root.SetOut(&out)
		root.SetErr(&errw)
		root.SetArgs(append([]string{"__complete", "-f", lab, "--runs", runs}, strings.Split(line, " ")...))
		if err := root.Execute(); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var got []string
		for l := range strings.Lines(out.String()) {
			if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ":") {
				got = append(got, l)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%q completes to %q, want %q", line, got, want)
		}
	}
}
