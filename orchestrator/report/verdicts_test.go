package report

import (
	"fmt"
	"testing"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// compared makes a comparison by hand, n boots a side.
func compared(target, workload, scenario, kernel string, v stats.Verdict, change, half float64, n int) compare.Comparison {
	c := compare.Comparison{Key: compare.Key{Target: target, Workload: workload, Scenario: scenario, Kernel: kernel, Baseline: "cfs"},
		Metric:  workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true},
		Primary: true, Verdict: v, Base: stats.Num(23.4), Value: stats.Num(23.4 * (1 + change)), Effect: 0.01}
	num := stats.Num
	c.Comparison = stats.Comparison{Scale: stats.Ratio, Boots: [2]int{n, n}, Change: num(change), Low: num(change - half), High: num(change + half),
		Low90: num(change - 0.8*half), High90: num(change + 0.8*half), HalfWidth: num(half), PT: num(0.001), PU: num(0.0079), P: num(0.0079),
		Attainable: num(0.0079), DF: num(7.2), Sessions: 1}
	c.Holm = num(0.0158)
	if n < 2 {
		m := stats.Missing("one boot on a side")
		c.Low, c.High, c.Low90, c.High90, c.HalfWidth, c.PT, c.PU, c.P, c.DF, c.Holm = m, m, m, m, m, m, m, m, m, m
	}
	return c
}

func none3(c *compare.Comparison, why string) {
	m := stats.Missing("%s", why)
	c.Base, c.Value, c.Change, c.Low, c.High, c.HalfWidth, c.P, c.PT, c.PU, c.Holm, c.Boots = m, m, m, m, m, m, m, m, m, m, [2]int{5, 0}
}

// everyVerdict is a judgement with each of the verdicts, and all that may stand
// beside one.
func everyVerdict() *compare.Judgement {
	win := compared("malta", "iperf.to_target", "default", "bfs", stats.Faster, 0.124, 0.014, 5)
	win.Findings = []results.Finding{{Rule: "few-switches", Text: "4.8 switches a second"}}
	win.Moved = []compare.Moved{{Counter: "context switches", Unit: "1/s", Base: stats.Num(4800), Value: stats.Num(217), Clear: true,
		Sentence: "context switches went from 4800 to 217 a second"}, {Counter: "user time", Sentence: "not clear, not shown"}}
	tie := compared("malta", "crunch.ltm", "j1", "bfs", stats.Same, 0.001, 0.004, 5)
	worse := compared("malta", "crunch.ltm", "j3", "bfs", stats.Slower, -0.031, 0.0071, 6)
	wide := compared("ar2317", "iperf.to_target", "default", "bfs", stats.Inconclusive, 0.392, 0, 1)
	wide.Sentence = "Observed +39.2 %, with 1 boot of each kernel; at least 4 are needed: 3 more of each."
	wide.Within = &compare.Within{Trials: [2]int{3, 3}, T: stats.Num(193), DF: stats.Num(4), P: stats.Num(4e-9), Separate: true}
	wide.More, wide.MoreCommand = 3, "kernsweep rerun RUN --target ar2317"
	tie.Findings = []results.Finding{{Rule: "unsteady", Text: "The boots drift.", Evidence: "0.4 % a boot", Threshold: "no trend"}}
	bad := compared("malta", "iperf.to_target", "default", "bore", stats.Invalid, 0.5, 0.1, 5)
	bad.Sentence = "The flash reported errors in 2 trials: nothing follows."
	dead := compared("malta", "crunch.ltm", "j1", "bore", stats.DidNotBoot, 0, 0, 5)
	none3(&dead, "bore did not boot")
	dead.Sentence = "bore did not boot: panic: Attempted to kill init!"
	hole := compared("malta", "crunch.ltm", "j3", "bore", stats.Inconclusive, 0, 0, 5)
	none3(&hole, "no values")
	loss := compared("malta", "iperf.to_target", "default", "bfs", "", -0.3, 0.2, 5)
	loss.Primary, loss.Scale = false, stats.Difference
	loss.Metric = workloads.Metric{Name: "loss", Unit: "%", Better: workloads.LowerIsBetter}
	loss.Base, loss.Value = stats.Num(0.4), stats.Num(0.1)
	return &compare.Judgement{Rules: stats.Defaults(), Family: 7,
		Comparisons: []compare.Comparison{win, loss, bad, tie, worse, dead, hole, wide},
		Overall: []compare.Overall{{Target: "malta", Kernel: "bfs", Baseline: "cfs", Workloads: []string{"iperf.to_target", "crunch.ltm"}, Blocks: 5,
			Gain: stats.Num(0.042), Low: stats.Num(0.03), High: stats.Num(0.05), Sentence: "bfs against cfs over 2 workloads: +4.2 % (+3.0 to +5.0), 5 blocks"}},
		Worth: []compare.Worth{{Key: wide.Key, Metric: "rate", Boots: 3, Why: "one boot of each kernel", Command: "kernsweep rerun 20261130T220000Z-overnight-7f3a --target ar2317 --kernel bfs --workload iperf.to_target"},
			{Key: worse.Key, Metric: "rate", Boots: 2, Why: "the interval is wide", Command: "kernsweep rerun 20261130T220000Z-overnight-7f3a --target malta"},
			{Key: tie.Key, Metric: "rate", Boots: 9, Why: "never shown: two are"}},
		Notes: []string{"The order was blocked: the kernel and the time of measurement cannot be told apart."},
		Findings: []results.Found{
			{Finding: results.Finding{Rule: "clock", Text: "The clock changed its pace by 3 % within trials.", Evidence: "1.031 s of REALTIME to 1 s", Threshold: "at most 500 ppm"}, Target: "malta", Kernel: "bfs"},
			{Finding: results.Finding{Rule: "config", Text: "The kernels differ in more than the scheduler.", Threshold: "no other option differs"}, Target: "malta", Kernel: "bfs", Against: "cfs",
				Detail: []string{"CONFIG_HZ: 250, 1000", "CONFIG_PREEMPT: n, y"}},
			{Finding: results.Finding{Rule: "flash", Hard: true, Text: "The kernel log has flash errors.", Evidence: "mtd: 3 errors", Threshold: "none"}, Target: "malta", Kernel: "bore", Workload: "iperf.to_target", Scenario: "default", Boot: 4, Trials: 2},
			{Finding: results.Finding{Rule: "clock", Text: "The clock changed its pace by 4 % within trials."}, Target: "ar2317"},
		}}
}

func verdictRun(t *testing.T) *results.Run {
	l := newLab(t, "verdicts")
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	for _, name := range []string{"malta", "ar2317"} {
		l.target(results.PlannedTarget{Name: name, Arch: "mipsle", Boot: "cfe", Boots: 15})
		l.cells(name, []string{"cfs", "bfs", "bore"}, "iperf.to_target", []string{"default"}, 1, 1, rate)
	}
	boot := l.booted("malta", "cfs", "2.6.30.5", "cfs", 1)
	s := slot("malta", "cfs", "iperf.to_target", "default", 1, boot, 1)
	l.trial(s, results.OK, "", parsed([]workloads.Metric{rate}, 23.4), nil)
	l.recs[len(l.recs)-1].Findings = []results.Finding{{Rule: "few-switches", Text: "4.8 context switches a second: no scheduler can make a difference of that.",
		Evidence: "4.8/s", Threshold: "10/s for each busy CPU"}}
	l.end("malta", "ar2317")
	return l.done()
}

func TestVerdicts(t *testing.T) {
	golden(t, "verdicts", verdictRun(t), everyVerdict(), "text+secondary", "md", "json", "csv", "comparisons", "junit", "bench")
}

// 200 cells stay readable: what did not change is counted.
func TestVerdictsOf200Cells(t *testing.T) {
	l := newLab(t, "many")
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	kernels := []string{"cfs", "bfs", "bore", "eevdf"}
	j := &compare.Judgement{Rules: stats.Defaults(), Family: 150}
	for i, target := range []string{"malta", "ar2317"} {
		l.target(results.PlannedTarget{Name: target})
		var names []string
		for k := range 25 {
			names = append(names, fmt.Sprintf("s%02d", k))
		}
		l.cells(target, kernels, "exec.x", names, 1, 1, rate)
		for k, s := range names {
			for n, kernel := range kernels[1:] {
				v, x := stats.Same, float64((7*k+3*n+i)%11)/5000
				switch {
				case n == 1 && k == 3:
					v, x = stats.Slower, -0.05
				case n == 2:
					v, x = stats.Faster, 0.02+x
				case k%9 == 8:
					v = stats.Inconclusive
				}
				j.Comparisons = append(j.Comparisons, compared(target, "exec.x", s, kernel, v, x, 0.008, 5))
			}
		}
	}
	l.end("malta", "ar2317")
	golden(t, "many", l.done(), j, "text")
}

// Averages of others' logs are shown as such, and where they are from.
func TestImportedAverages(t *testing.T) {
	l := newLab(t, "old")
	ms := []workloads.Metric{{Name: "half.elapsed", Unit: "s", Better: workloads.LowerIsBetter, Primary: true}, m("half.user", "s", workloads.LowerIsBetter)}
	meta := l.run.Meta
	meta.Imported = &results.Import{Note: "posted to a mailing list in 2010", Files: []results.ImportedFile{{Name: "kernbench\x1b[2J.log", Format: "kernbench"}}}
	if err := l.run.SetMeta(meta); err != nil {
		t.Fatal(err)
	}
	l.cells("quad", []string{"mainline", "ck1"}, "kernbench.x", []string{"half"}, 1, 1, ms...)
	for i, k := range []string{"mainline", "ck1"} {
		p := parsed(ms, 45.56+float64(i), 78.336)
		p.Values[0].N, p.Values[0].SD = 5, 0.100995
		p.Values[1].N, p.Values[1].SD = 5, 0.0756968
		l.trial(slot("quad", k, "kernbench.x", "half", 1, i+1, 1), results.OK, "", p, nil)
	}
	l.end("quad")
	golden(t, "imported", l.done(), nil, "text")
}
