package compare

import (
	"math"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// One trial of 0 in a boot takes the logarithm from the whole comparison, although
// the mean of that boot has one: the scale does not depend on who shared its boot.
func TestZeroTrialHasNoRatio(t *testing.T) {
	l := newLab()
	m := workloads.Metric{Name: "loss", Unit: "%", Better: workloads.LowerIsBetter, Primary: true}
	l.cells("router", "iperf.up", "default", []workloads.Metric{m}, "cfs", "bfs")
	for block, x := range [][4]float64{{1, 3, 2, 4}, {2, 0, 3, 3}, {3, 2, 2, 5}, {2, 2, 4, 2}, {1, 2, 3, 5}} {
		for k, kernel := range []string{"cfs", "bfs"} {
			boot := l.boot("router", kernel, block+1)
			for r := range 2 {
				l.try(results.Cell{Target: "router", Kernel: kernel, Workload: "iperf.up", Scenario: "default"}, block+1, boot, r+1,
					trial{values: []workloads.Value{{Metric: m, Value: x[2*k+r]}}})
			}
		}
	}
	c := Judge("night", l.state(), Options{}).Comparisons[0]
	if c.Scale != stats.Difference || math.Abs(c.Change.Value-1.5) > 1e-9 || math.Abs(c.Base.Value-1.8) > 1e-9 {
		t.Errorf("scale %s, change %v, base %v; want a difference of 1.5 from 1.8", c.Scale, c.Change, c.Base)
	}
}
