package orchestrator

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

const lacksLab = `
kernel "bfs" {
  scheduler = "bfs"
  release   = "4.19.0-bfs"
  image "amd64" { kernel = "x" }
}
kernel "plain" {
  scheduler = "cfs"
  release   = "4.19.*"
  image "mipsle" { kernel = "x" }
}
workload "iperf" "to_target" { tool = "iperf2" }
workload "iperf" "any" {}
workload "crunch" "c" { work = 1 }
sweep "overnight" {
  kernels = [kernel.bfs, kernel.plain]
  matrix {
    targets   = [target.n]
    workloads = [workload.iperf.to_target, workload.iperf.any, workload.crunch.c]
  }
}
target "n" {
  arch   = "mipsle"
  labels = ["mips", "rack2", "big-endian"]
  host   = "192.0.2.1"
  boot "kexec" {}
}
`

func lacksFor(t *testing.T, s *targets.Survey) ([]SweepLacks, []Drift) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.hcl")
	if err := os.WriteFile(path, []byte(lacksLab), 0o644); err != nil {
		t.Fatal(err)
	}
	a, diags := config.NewAdder(path, nil, nil)
	if a == nil {
		t.Fatal(diags)
	}
	n := a.Lab().Target("n")
	return Lacks(a.Lab(), n, s, t.TempDir()), FindDrift(a.Lab(), n, s, func(p ...string) config.Pos { return a.At("n", p...) })
}

func surveyed() *targets.Survey {
	s := &targets.Survey{UID: "0", Arch: targets.Found{Value: "mipsle", Evidence: "ELF"}, ByteOrder: targets.Found{Value: "little-endian"},
		Methods: []targets.Method{{Name: "kexec"}, {Name: "none"}}}
	s.Running.Release, s.Running.Scheduler.Name = "4.19.7", "cfs"
	s.Running.Tools = map[string]string{"iperf": "iperf version 2.0.5"}
	s.Places = []targets.Place{{Dir: "/tmp", Write: true, Exec: true, FreeKB: -1}}
	return s
}

func TestLacksOfANewTarget(t *testing.T) {
	s := surveyed()
	got, _ := lacksFor(t, s)
	if len(got) != 2 || len(got[0].Lacks) != 4 || !strings.Contains(strings.Join(got[0].Lacks, "\n"), "never rehearsed: kernsweep target doctor n") {
		t.Errorf("%v", got)
	}
	if want := []string{"kernel bfs has no image for mipsle"}; !slices.Equal(got[1].Lacks, want) {
		t.Errorf("%q, want %q", got[1].Lacks, want)
	}
	s.Running.Tools = map[string]string{"iperf": "iperf 3.12 under another name"}
	got, _ = lacksFor(t, s)
	if !slices.Contains(got[1].Lacks, "iperf2 is missing on the target for workload iperf.to_target") || len(got[1].Lacks) != 2 {
		t.Errorf("%q", got[1].Lacks)
	}
}

// TestDriftOfATarget: each thing that no longer holds is one line with its place.
func TestDriftOfATarget(t *testing.T) {
	labels := []string{"it is labelled \"mips\"", "it is labelled \"big-endian\""}
	for name, c := range map[string]struct {
		change func(*targets.Survey)
		want   []string // beside the labels
	}{
		"as it was":    {func(*targets.Survey) {}, nil},
		"architecture": {func(s *targets.Survey) { s.Arch.Value = "amd64" }, []string{`lab.hcl:23:3: arch is "mipsle", and the target is amd64`}},
		"no kernel of the file": {func(s *targets.Survey) { s.Running.Scheduler.Name = "eevdf" },
			[]string{"lab.hcl:22:1: it runs 4.19.7 with the scheduler eevdf, which is no kernel of the file; to measure it as it is: kernel \"NAME\" { release = \"4.19.7\" }"}},
		"kexec is gone":         {func(s *targets.Survey) { s.Methods = s.Methods[1:] }, []string{`lab.hcl:26:3: boot "kexec": nothing that it needs is seen there`}},
		"kexec is switched off": {func(s *targets.Survey) { s.Methods[0].Fill = "kexec is off" }, []string{`lab.hcl:26:3: boot "kexec": kexec is off`}},
		"no root":               {func(s *targets.Survey) { s.UID, s.Methods = "7", s.Methods[1:] }, []string{`boot "kexec" needs root, and the login has uid 7`}},
		"no place":              {func(s *targets.Survey) { s.Places[0].Exec = false }, []string{"the agent has no place"}},
		"no iperf":              {func(s *targets.Survey) { s.Running.Tools = nil }, []string{"lab.hcl:12:1: iperf2 is missing on the target, and sweep overnight needs it"}},
		"cut short":             {func(s *targets.Survey) { s.Methods, s.Cut, s.Places, s.Running.Tools = nil, "time", nil, nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := surveyed()
			c.change(s)
			_, drift := lacksFor(t, s)
			var got []string
			for _, d := range drift {
				got = append(got, d.Pos.String()+": "+d.Text)
			}
			want := append(slices.Clone(labels), c.want...)
			if len(got) != len(want) {
				t.Errorf("%d lines, want %d: %q", len(got), len(want), got)
			}
			for _, w := range want {
				if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
					t.Errorf("%q is missing in %q", w, got)
				}
			}
		})
	}
}

// TestChangesSinceAdded: memory may differ by what a kernel keeps; the rest counts.
func TestChangesSinceAdded(t *testing.T) {
	was, is := surveyed(), surveyed()
	was.Running.MemoryKB, is.Running.MemoryKB = 64<<10, 62<<10
	if got := Changes(was, is); len(got) > 0 {
		t.Errorf("%v", got)
	}
	is.Running.MemoryKB, is.Running.CPUs, is.Places = 32<<10, 2, nil
	was.Server.HostKey, is.Server.HostKey = "a", "b"
	var names []string
	for _, c := range Changes(was, is) {
		names = append(names, c.What)
	}
	if want := []string{"CPUs", "memory", "host key", "places"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	k := KeptSurvey{Target: "n", Address: "a", Survey: was}
	runs := t.TempDir()
	if err := k.Save(runs); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadSurvey(runs, "n"); err != nil || len(Changes(was, got.Survey)) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, torn := range []string{"{}", `{"survey": null}`, "null", "["} {
		if err := os.WriteFile(surveyFile(runs, "n"), []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := LoadSurvey(runs, "n"); err == nil && got.Survey == nil {
			t.Errorf("%s is a survey without one", torn)
		}
	}
}
