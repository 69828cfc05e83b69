package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// A run that cannot be read is listed with what is wrong with it, beside the
// others; damage in a journal is said where one looks first.
func TestStatusOfDamagedRuns(t *testing.T) {
	runs := t.TempDir()
	var made []*results.Run
	for i, sweep := range []string{"fine", "nometa", "newer", "torn"} {
		r, err := results.Create(runs, sweep, results.RunMeta{}, time.Now().Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, r)
	}
	for path, text := range map[string]string{
		filepath.Join(made[1].Dir(), "run.json"):      "",
		filepath.Join(made[2].Dir(), "run.json"):      `{"format":99,"kernsweep_version":"9.0"}`,
		filepath.Join(made[3].Dir(), "journal.jsonl"): `{"seq":1,"ki`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var out, errw bytes.Buffer
	a := &app{out: &out, err: &errw, env: os.LookupEnv}
	root := a.root()
	root.SetArgs([]string{"--runs", runs, "status"})
	if err := root.Execute(); err != nil {
		t.Fatal(err, errw.String())
	}
	text := regexp.MustCompile(`\n +`).ReplaceAllString(out.String(), " ") // unfolded
	for _, want := range []string{
		results.Short(made[0].Name()) + "  not begun",
		made[1].Name() + "  unreadable", "run.json is damaged (it is empty)",
		made[2].Name() + "  unreadable", "has format 99, this kernsweep reads 1 to 2", "use the version that made it (9.0)",
		results.Short(made[3].Name()) + "  not begun", "torn tail of 12 bytes dropped",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
