package compare

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// pair is a run of two kernels on one target with one workload, ABBA.
func pair(m workloads.Metric, a, b []float64) *lab {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{m}, "cfs", "bfs")
	l.abba(cell("desk", "cfs", "iperf.to", "default"), "bfs", a, b)
	return l
}

func TestSentences(t *testing.T) {
	loss := workloads.Metric{Name: "loss", Unit: "%", Better: workloads.LowerIsBetter, Primary: true}
	count := workloads.Metric{Name: "misses", Unit: "count", Better: workloads.LowerIsBetter, Primary: true}
	for name, c := range map[string]struct {
		l    *lab
		v    stats.Verdict
		want string
	}{
		"faster":       {pair(throughput(), around(100, 5), around(112, 5)), stats.Faster, "faster: +12.0 % (95 % CI +11.4 to +12.6 %), 5 boots against 5"},
		"slower":       {pair(throughput(), around(112, 5), around(100, 5)), stats.Slower, "slower: -10.7 % (95 % CI -11.2 to -10.2 %), 5 boots against 5"},
		"lower faster": {pair(elapsed(), around(100, 5), around(88, 5)), stats.Faster, "faster: elapsed -12.0 % (95 % CI -12.5 to -11.5 %; lower is better), 5 boots against 5"},
		"lower slower": {pair(elapsed(), around(88, 5), around(100, 5)), stats.Slower, "slower: elapsed +13.6 % (95 % CI +13.0 to +14.3 %; lower is better), 5 boots against 5"},
		"same":         {pair(throughput(), around(100, 6), around(99.9, 6)), stats.Same, "same within 1 %: -0.10 % (95 % CI -0.58 to +0.38 %), 6 boots against 6"},
		"equal values": {pair(throughput(), []float64{7, 7, 7, 7, 7}, []float64{7, 7, 7, 7, 7}), stats.Same, "same within 1 %: 0.00 % (95 % CI 0.00 to 0.00 %), 5 boots against 5"},
		"wide": {pair(throughput(), []float64{90, 110, 95, 105, 100}, []float64{95, 108, 91, 104, 106}), stats.Inconclusive,
			"inconclusive: observed +0.8 % (95 % CI -9.9 to +12.8 %), 5 boots against 5; the interval is wider than ±1 %"},
		"one boot": {pair(throughput(), []float64{23}, []float64{32}), stats.Inconclusive, "inconclusive: observed +39.1 %, 1 boot of each kernel on file, need 4 of each"},
		"three":    {pair(throughput(), []float64{23.0, 22.9, 22.9}, []float64{32.0, 31.9, 31.9}), stats.Inconclusive, "3 boots of each kernel on file, need 4 of each"},
		"zeros":    {pair(loss, []float64{0, 0, 0, 0, 0}, []float64{2, 2.1, 1.9, 2, 2.2}), stats.Slower, "slower: loss +2.04 percentage points (95 % CI +1.898 to +2.182 percentage points; lower is better), 5 boots against 5"},
		"negative": {pair(count, []float64{-10, -11, -9, -10, -10}, []float64{-20, -21, -19, -20, -20}), stats.Faster, "faster: misses -10 count"},
		"all zero": {pair(loss, []float64{0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0}), stats.Same, "0 percentage points"},
		"huge":     {pair(throughput(), []float64{1e300, 1.01e300, 1e300, 1.01e300}, []float64{2e300, 2.01e300, 2.02e300, 2e300}), stats.Faster, "faster: +99.8 %"},
		"tiny":     {pair(throughput(), []float64{1e-300, 1.01e-300, 1e-300, 1.01e-300}, []float64{2e-300, 2.01e-300, 2.02e-300, 2e-300}), stats.Faster, "faster: +99.8 %"},
	} {
		t.Run(name, func(t *testing.T) { wants(t, judge1(t, c.l, Options{}), c.v, c.want) })
	}
}

// A drift that is common to both kernels: in order ABBA it is no difference and is
// told; all of one kernel before all of the other it looks like one and is not
// called one.
func TestDriftAndOrder(t *testing.T) {
	drift := func(order string) *lab {
		l := newLab()
		l.cells("desk", "exec.w", "default", []workloads.Metric{elapsed()}, "A", "B")
		block := map[rune]int{}
		for i, k := range order {
			block[k]++
			l.measure(cell("desk", string(k), "exec.w", "default"), block[k], 100+0.8*float64(i))
		}
		return l
	}
	c := judge1(t, drift("ABBAABBAABBA"), Options{})
	wants(t, c, stats.Inconclusive, "observed elapsed 0.0 % (95 % CI -3.7 to +3.8 %", "wider than")
	if len(c.Findings) != 1 || c.Findings[0].Rule != "drift" || !strings.Contains(c.Findings[0].Evidence, "from the first to the last of 12 boots") {
		t.Errorf("the drift is not told: %+v", c.Findings)
	}
	l := drift("AAAAAABBBBBB")
	j := Judge("RUN", l.state(), Options{})
	wants(t, j.Comparisons[0], stats.Inconclusive, "observed elapsed +4.7 %", "order and kernel cannot be told apart (all boots of A came before all of B)", `measure again with order = "interleaved"`)
	if !mentions(j.Notes, "order and kernel cannot be told apart in 1 comparison") {
		t.Errorf("notes: %q", j.Notes)
	}
	l = drift("BBBBBBAAAAAA")
	wants(t, judge1(t, l, Options{}), stats.Inconclusive, "all boots of B came before all of A")
	l = pair(throughput(), around(100, 5), around(112, 5))
	l.plan.Design.Order = "blocked"
	j = Judge("RUN", l.state(), Options{})
	wants(t, j.Comparisons[0], stats.Inconclusive, `the sweep ran with order = "blocked"`)
	if !mentions(j.Notes, "nothing here is a claim") || len(j.Worth) != 0 {
		t.Errorf("notes %q, worth %+v", j.Notes, j.Worth)
	}
}

func mentions(list []string, part string) bool {
	for _, s := range list {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

func TestWhatIsNoClaim(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	l.unproven = "boot method none: no nonce"
	l.abba(cell("desk", "cfs", "iperf.to", "default"), "bfs", around(100, 5), around(112, 5))
	c := judge1(t, l, Options{})
	wants(t, c, stats.Inconclusive, "observed +12.0 %", "5 boots of each kernel on file, none proven (boot method none: no nonce), need 4 proven ones of each")
	if !c.Change.OK() {
		t.Error("the observed difference is not shown")
	}

	l = pair(throughput(), around(100, 5), around(112, 5))
	l.plan.Targets[0].HostBound = true
	wants(t, judge1(t, l, Options{}), stats.Inconclusive, "NOT COMPARABLE, the figures of desk depend on the controller's load", "+12.0 %")

	l = pair(throughput(), around(100, 5), around(112, 5))
	l.unproven = "nobody looked"
	l.measure(cell("desk", "bfs", "iperf.to", "default"), 6, 900)
	c = judge1(t, l, Options{})
	wants(t, c, stats.Faster, "+12.0 %", "5 boots against 5")
	if len(c.Findings) != 1 || !strings.Contains(c.Findings[0].Text, "1 boot of bfs left out") {
		t.Errorf("the unproven boot is not told: %+v", c.Findings)
	}

	hard := results.Found{Finding: results.Finding{Rule: "configs differ", Hard: true, Text: "the kernels differ in more than the scheduler"}, Target: "desk", Kernel: "bfs", Against: "cfs"}
	l = pair(throughput(), around(100, 5), around(112, 5))
	wants(t, judge1(t, l, Options{Findings: []results.Found{hard}}), stats.Invalid, "invalid: the kernels differ in more than the scheduler", "observed +12.0 %")
	hard.Metric = "another"
	wants(t, judge1(t, l, Options{Findings: []results.Found{hard}}), stats.Faster)
	spoilt := results.Found{Finding: results.Finding{Rule: "oops", Hard: true, Text: "the kernel complained"}, Target: "desk", Boot: 1}
	c = judge1(t, l, Options{Findings: []results.Found{spoilt}})
	wants(t, c, stats.Faster, "5 boots against 4")
}

func TestDidNotBoot(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs", "muqss")
	base := cell("desk", "cfs", "iperf.to", "default")
	for b := 1; b <= 5; b++ {
		l.measure(base, b, 100)
		l.failed("desk", "bfs", b, "kernel", "panic", "sda: sda1 sda2", "Kernel panic - not syncing: VFS", "  ")
		l.try(cell("desk", "muqss", "iperf.to", "default"), b, l.boot("desk", "muqss", b), 1, trial{outcome: results.Invalid, reason: "the CPU was throttled"})
	}
	j := Judge("RUN", l.state(), Options{})
	wants(t, j.Comparisons[0], stats.DidNotBoot, `did not boot: bfs stopped at stage kernel (panic); its console ends with "Kernel panic - not syncing: VFS"`)
	wants(t, j.Comparisons[1], stats.Invalid, "invalid: muqss on desk: every trial is invalid (5): the CPU was throttled")
	if j.Family != 0 {
		t.Errorf("a family of %d", j.Family)
	}

	l = newLab() // the baseline fails
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	l.failed("desk", "cfs", 1, "", "silent for 60 s")
	l.measure(cell("desk", "bfs", "iperf.to", "default"), 1, 100)
	wants(t, judge1(t, l, Options{}), stats.DidNotBoot, "did not boot: cfs did not come up (silent for 60 s)")
}

func TestMissingValuesHaveAReason(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs", "eevdf", "late")
	for b := 1; b <= 4; b++ {
		l.measure(cell("desk", "cfs", "iperf.to", "default"), b, 100)
		l.try(cell("desk", "bfs", "iperf.to", "default"), b, l.boot("desk", "bfs", b), 1,
			trial{values: []workloads.Value{{Metric: throughput(), Missing: "iperf printed no summary"}}})
		l.try(cell("desk", "eevdf", "iperf.to", "default"), b, l.boot("desk", "eevdf", b), 1, trial{outcome: results.Failed, reason: "iperf: connection refused"})
	}
	l.plan.Cells[3].NA = "needs a Go agent"
	j := Judge("RUN", l.state(), Options{})
	wants(t, j.Comparisons[0], stats.Inconclusive, "inconclusive: n/a (bfs: iperf printed no summary)")
	wants(t, j.Comparisons[1], stats.Inconclusive, "inconclusive: n/a (eevdf: failed: iperf: connection refused)")
	wants(t, j.Comparisons[2], stats.Inconclusive, "inconclusive: n/a (late: needs a Go agent)")
	for _, c := range j.Comparisons {
		if c.Change.OK() || c.Value.OK() || c.Value.Missing == "" {
			t.Errorf("%s has a value: %+v", c.Kernel, c.Comparison)
		}
	}
}

// Twelve comparisons of five boots: the exact test's smallest p, corrected, is
// 0.095. One more boot of each kernel makes it 0.026.
func TestHolmOverTheRun(t *testing.T) {
	l := newLab()
	for i := range 12 {
		l.cells(fmt.Sprintf("t%02d", i), "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
		l.abba(cell(fmt.Sprintf("t%02d", i), "cfs", "iperf.to", "default"), "bfs", around(100, 5), around(110+float64(i), 5))
	}
	j := Judge("RUN", l.state(), Options{})
	if j.Family != 12 {
		t.Fatalf("a family of %d", j.Family)
	}
	for _, c := range j.Comparisons {
		wants(t, c, stats.Inconclusive, "5 boots against 5; among 12 primary comparisons so few boots cannot decide, needs about 1 more boot of each")
		if c.MoreCommand != "kernsweep rerun RUN --more 1 --target "+c.Target+" --workload iperf.to" {
			t.Errorf("command %q", c.MoreCommand)
		}
	}
	if len(j.Worth) != 2 || j.Worth[0].Target != "t11" || j.Worth[1].Target != "t10" || j.Worth[0].Boots != 1 || j.Worth[0].Command == "" {
		t.Errorf("worth %+v", j.Worth)
	}
	l.plan.Design.Primary = []string{"iperf.other"} // declared beforehand, a small family decides
	if j = Judge("RUN", l.state(), Options{}); j.Family != 0 {
		t.Errorf("a family of %d", j.Family)
	}
}

func TestDeclaredPrimary(t *testing.T) {
	cpu := workloads.Metric{Name: "sys", Unit: "s", Better: workloads.LowerIsBetter}
	l := newLab()
	l.cells("desk", "crunch.ltm", "j1", []workloads.Metric{elapsed(), cpu}, "cfs", "bfs")
	l.cells("desk", "crunch.ltm", "j3", []workloads.Metric{elapsed(), cpu}, "cfs", "bfs")
	l.cells("desk", "exec.w", "default", []workloads.Metric{cpu}, "cfs", "bfs")
	count := func(declared ...string) (string, *Judgement) {
		l.plan.Design.Primary = declared
		j := Judge("RUN", l.state(), Options{})
		s := ""
		for _, c := range j.Comparisons {
			if c.Primary {
				s += c.Scenario + ":" + c.Metric.Name + " "
			}
		}
		return s, j
	}
	for _, c := range []struct {
		declared []string
		want     string
	}{
		{nil, "j1:elapsed j3:elapsed "},
		{[]string{"crunch.ltm"}, "j1:elapsed j3:elapsed "},
		{[]string{"crunch.ltm.j3"}, "j3:elapsed "},
		{[]string{"crunch.ltm:sys"}, "j1:sys j3:sys "},
		{[]string{"crunch.ltm.j1:sys", "exec.w:sys"}, "j1:sys default:sys "},
	} {
		if got, _ := count(c.declared...); got != c.want {
			t.Errorf("%q: %q, want %q", c.declared, got, c.want)
		}
	}
	if _, j := count("crunch.other"); !mentions(j.Notes, "nothing that can be compared has that name: crunch.other") {
		t.Errorf("notes %q", j.Notes)
	}
	if _, j := count(); !mentions(j.Notes, "no primary metric, so intervals and no verdict: exec.w.default") {
		t.Errorf("notes %q", j.Notes)
	}
}

// A rerun on another day is a session of its own: whole blocks of it count beside
// the first night's, within their day; a kernel measured alone does not.
func TestRerunIsASessionOfItsOwn(t *testing.T) {
	base := cell("desk", "cfs", "iperf.to", "default")
	l := pair(throughput(), around(100, 4), around(103, 4))
	l.session(9*time.Hour, "rerun of whole blocks")
	l.abbaFrom(5, base, "bfs", around(80, 4), around(82.4, 4)) // a slower day
	c := judge1(t, l, Options{})
	wants(t, c, stats.Faster, "+3.0 %", "8 boots against 8 in 2 sessions")

	l = pair(throughput(), around(100, 4), around(103, 4))
	l.session(30*time.Minute, "resume")
	l.abbaFrom(5, base, "bfs", around(100, 2), around(103, 2))
	wants(t, judge1(t, l, Options{}), stats.Faster, "+3.0 %", "6 boots against 6")

	l = pair(throughput(), around(100, 4), around(103, 4)) // block 4's kernel alone, later
	l.session(9*time.Hour, "rerun of failed cells alone")
	l.measure(cell("desk", "bfs", "iperf.to", "default"), 4, 200)
	c = judge1(t, l, Options{})
	wants(t, c, stats.Inconclusive, "3 boots of bfs and 4 of cfs", "need 4 of each")
}

// A controller that died left no end of its session: its last record tells when.
func TestAResumeAfterACrash(t *testing.T) {
	base := cell("desk", "cfs", "iperf.to", "default")
	for after, sessions := range map[time.Duration]int{20 * time.Minute: 1, 5 * time.Hour: 2} {
		l := pair(throughput(), around(100, 4), around(103, 4))
		l.now = l.now.Add(3 * time.Hour) // the night was long
		l.abbaFrom(5, base, "bfs", around(100, 2), around(103, 2))
		l.now = l.now.Add(after)
		l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan + ": resume"})
		l.abbaFrom(7, base, "bfs", around(100, 2), around(103, 2))
		if c := judge1(t, l, Options{}); c.Sessions != sessions || c.Boots != [2]int{8, 8} {
			t.Errorf("%s later: %d sessions, %v boots", after, c.Sessions, c.Boots)
		}
	}
}

func TestImportOfAverages(t *testing.T) {
	avg := func(mean, sd float64) []workloads.Value {
		return []workloads.Value{{Metric: elapsed(), Value: mean, N: 5, SD: sd, Resolution: 0.001}}
	}
	l := newLab()
	l.plan = results.PlanSummary{} // no plan at all
	l.unproven = "imported: its boot is not known"
	l.try(cell("q9650", "2.6.35", "kernbench.log", "single"), 1, l.boot("q9650", "2.6.35", 1), 1, trial{values: avg(89.302, 0.0396232)})
	l.try(cell("q9650", "2.6.35-ck1", "kernbench.log", "single"), 1, l.boot("q9650", "2.6.35-ck1", 1), 1, trial{values: avg(89.05, 0.0316228)})
	j := Judge("RUN", l.state(), Options{})
	c := j.Comparisons[0]
	wants(t, c, stats.Inconclusive, "observed elapsed -0.28 % (lower is better), 1 boot of each kernel on file, none proven (imported: its boot is not known), need 4 proven ones of each",
		"inside the two boots the trials separate (5 against 5, Welch t = -11.1")
	if c.Baseline != "2.6.35" || !mentions(j.Notes, "no baseline is declared for q9650: its first kernel, 2.6.35, is taken for it") {
		t.Errorf("baseline %s, notes %q", c.Baseline, j.Notes)
	}
	if w := c.Within; w == nil || w.T.Value > -11 || w.T.Value < -11.2 || !w.Separate {
		t.Errorf("within: %+v", w)
	}
	if len(j.Worth) != 1 || j.Worth[0].Command != "" || !strings.Contains(j.Worth[0].Why, "boot 2.6.35 and 2.6.35-ck1 4 times each, in turns") {
		t.Errorf("worth %+v", j.Worth)
	}
}
