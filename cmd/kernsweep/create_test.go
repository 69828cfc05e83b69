package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// Whenever it is killed, there is a whole run or none.
func TestAWholeRunOrNone(t *testing.T) {
	a := &app{runs: t.TempDir() + "/runs"}
	broken := errors.New("no room")
	for _, want := range []error{broken, nil} {
		run, err := a.wholeRun("night", results.RunMeta{Seed: 7}, func(run *results.Run) error {
			if names, err := results.List(a.runs); err != nil || len(names) > 0 {
				t.Errorf("unfinished, but listed: %q, %v", names, err)
			}
			return errors.Join(run.WriteFile("kept.json", []byte("{}")), want)
		})
		if !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		if want == nil {
			if found, err := results.Find(a.runs, "latest"); err != nil || found.Dir() != run.Dir() || found.Meta.Seed != 7 {
				t.Errorf("latest is %+v, %v", found, err)
			}
		}
		if left, err := os.ReadDir(a.runs); err != nil || want != nil && len(left) > 0 || want == nil && len(left) != 1 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

func TestAgesAndSizes(t *testing.T) {
	for text, want := range map[string]time.Duration{"12h": 12 * time.Hour, "30d": 720 * time.Hour, "8w": 1344 * time.Hour, "1.5d": 36 * time.Hour, "90m": 90 * time.Minute} {
		if got, err := parseAge(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "30", "d", "-3d", "0d", "NaNd", "Infw", "1e99d", "3 days", "٣d"} {
		if got, err := parseAge(text); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
	for text, want := range map[string]int64{"1k": 1024, "500M": 500 << 20, "20G": 20 << 30, "1t": 1 << 40, "1.5GiB": 3 << 29, "10 kB": 0, "2KB": 2048} {
		if got, err := parseSize(text); err != nil != (want == 0) || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "G", "-1G", "0", "0G", "20", "1B", "NaN", "9999999T", "1X", "1GG"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
}
