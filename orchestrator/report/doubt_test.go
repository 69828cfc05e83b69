package report

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// doubtfulRun has two kernels of four boots each: of b's the third is not
// proven. A second target's figures depend on the controller.
func doubtfulRun(t *testing.T) *results.Run {
	l := newLab(t, "doubt")
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	l.target(results.PlannedTarget{Name: "desk"})
	l.target(results.PlannedTarget{Name: "guest", HostBound: true})
	kernels := []string{"a", "b"}
	for _, target := range []string{"desk", "guest"} {
		l.cells(target, kernels, "iperf.to", []string{"default"}, 4, 1, rate)
		for _, k := range kernels {
			for block := 1; block <= 4; block++ {
				rec := targets.BootRecord{Kernel: k, Release: "6.1", Proven: true, Scheduler: targets.Scheduler{Name: "cfs"}}
				if k == "b" && block == 3 {
					rec.Proven, rec.Unproven = false, "no nonce"
				}
				boot := l.bootAs(target, results.Boot{Kernel: k, Block: block, Outcome: results.OK, Record: rec})
				l.trial(slot(target, k, "iperf.to", "default", block, boot, 1), results.OK, "", parsed([]workloads.Metric{rate}, float64(100+10*len(k)+block)), nil)
			}
		}
		l.end(target)
	}
	return l.done()
}

// What no verdict rests on does not enter benchstat's answer unmarked.
func TestBenchstatKeepsDoubtsApart(t *testing.T) {
	text := renderAs(t, doubtfulRun(t), Options{Format: "bench"})
	want := []string{"kernel: a", "bench", "bench", "bench", "bench", "kernel: b", "bench", "bench", "doubt: unproven", "bench", "doubt:", "bench",
		"kernel: a", "doubt: controller-load", "bench", "bench", "bench", "bench", "kernel: b", "bench", "bench", "bench", "bench"}
	var got []string
	for line := range strings.Lines(text) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "Benchmark"):
			got = append(got, "bench")
		case strings.HasPrefix(line, "kernel:"), strings.HasPrefix(line, "doubt:"):
			got = append(got, line)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", text)
	}
	file := filepath.Join(t.TempDir(), "bench.txt")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "benchstat", "-col", "kernel", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "doubt: unproven") || !strings.Contains(string(out), "doubt: controller-load") {
		t.Errorf("%v: %s", err, out)
	}
}
