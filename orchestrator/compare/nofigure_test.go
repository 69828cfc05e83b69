package compare

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// A warning stands beside a number; where there is none, the answer is why, and
// it is said of both kernels when it is so of both.
func TestNoFigureNoWarning(t *testing.T) {
	l := twoWorkloads(4, 1.1)
	l.cells("desk", "exec.w", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	soft := results.Found{Finding: results.Finding{Rule: "different configurations", Text: "they differ"}, Target: "desk", Kernel: "bfs", Against: "cfs"}
	empty := 0
	for _, c := range Judge("RUN", l.state(), Options{Findings: []results.Found{soft}}).Comparisons {
		told := len(c.Findings) > 0 && c.Findings[0].Rule == soft.Rule
		if c.Workload != "exec.w" && !told {
			t.Errorf("%s: the warning is not told: %+v", c.Workload, c.Findings)
		}
		if c.Workload == "exec.w" {
			empty++
			if told || !strings.Contains(c.Sentence, "n/a (both kernels: ") {
				t.Errorf("without a figure: %s, %+v", c.Sentence, c.Findings)
			}
		}
	}
	if empty == 0 {
		t.Error("no comparison without a figure")
	}
}
