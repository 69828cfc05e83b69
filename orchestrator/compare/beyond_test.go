package compare

import (
	"slices"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
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

// The order that a table of other people's figures tells serves as well; without
// one the order of the file says nothing.
func TestDriftOfUnprovenBoots(t *testing.T) {
	for order, want := range map[string]bool{"interleaved": true, "": false} {
		l := newLab()
		l.unproven, l.plan.Design.Order = "imported: each trial is taken for a boot", order
		l.cells("desk", "table.imported", "default", []workloads.Metric{elapsed()}, "A", "B")
		block := map[rune]int{}
		for i, k := range "ABBAABBAABBA" {
			block[k]++
			l.measure(cell("desk", string(k), "table.imported", "default"), block[k], 100+0.8*float64(i))
		}
		c := judge1(t, l, Options{})
		if got := slices.ContainsFunc(c.Findings, func(f results.Finding) bool { return f.Rule == "drift" }); got != want {
			t.Errorf("order %q: %+v", order, c.Findings)
		}
	}
}

// Whoever imports figures may say which boots they are of. That is not proof:
// a verdict stands on it, and says so. Beside proven boots it never stands.
func TestDeclaredBoots(t *testing.T) {
	build := func(declared string, kernels string) *lab {
		l := newLab()
		l.unproven, l.plan.Design.Order = "imported: each file is taken for a boot", ""
		l.cells("desk", "table.imported", "default", []workloads.Metric{elapsed()}, "A", "B")
		block := map[rune]int{}
		for i, k := range "AAAAABBBBB" {
			l.declared = ""
			if strings.ContainsRune(kernels, k) {
				l.declared = declared
			}
			block[k]++
			v := 100 + 0.1*float64(i%5)
			if k == 'B' {
				v *= 0.9
			}
			l.measure(cell("desk", string(k), "table.imported", "default"), block[k], v)
		}
		return l
	}
	wants(t, judge1(t, build("each file is taken for a boot", "AB"), Options{}), stats.Faster, "-10.0 %", "5 boots against 5",
		"on the word of whoever imported it, nothing of it is proven, and the order of the boots is not known")
	wants(t, judge1(t, build("", "AB"), Options{}), stats.Inconclusive, "none proven", "need 4 proven ones of each")
	wants(t, judge1(t, build("each file is taken for a boot", "A"), Options{}), stats.Inconclusive, "none proven")

	l := build("each file is taken for a boot", "AB")
	l.plan.Design.Order = "blocked"
	wants(t, judge1(t, l, Options{}), stats.Inconclusive, "order and kernel cannot be told apart")
}
