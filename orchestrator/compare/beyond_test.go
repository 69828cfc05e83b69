package compare

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// Values from the smallest to the largest that a number holds drift by more than
// a percentage can say.
func TestDriftBeyondNumbers(t *testing.T) {
	l := newLab()
	m := throughput()
	l.cells("router", "iperf.up", "default", []workloads.Metric{m}, "cfs", "bfs")
	cell := func(k string) results.Cell {
		return results.Cell{Target: "router", Kernel: k, Workload: "iperf.up", Scenario: "default"}
	}
	for block, x := range [][2]float64{{1e-300, 1e-300}, {1, 1}, {1e299, 1e300}, {1e305, 1e305}} {
		for k, kernel := range []string{"cfs", "bfs"} {
			l.measure(cell(kernel), block+1, x[k])
		}
	}
	for _, f := range Judge("night", l.state(), Options{}).Comparisons[0].Findings {
		if f.Rule != "drift" {
			continue
		}
		if strings.Contains(f.Evidence, "Inf") || !strings.Contains(f.Evidence, "beyond all numbers") {
			t.Errorf("evidence %q", f.Evidence)
		}
		return
	}
	t.Error("no drift was told")
}
