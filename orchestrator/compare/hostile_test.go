package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// Whatever a run holds, a judgement is whole: every comparison has a sentence,
// every missing figure a reason, and nothing that JSON cannot hold.
func TestAnyRunIsJudged(t *testing.T) {
	odd := []float64{0, -1, 1, 1e-320, 1e308, -1e308, math.NaN(), math.Inf(1), 5, 5.0000001, 4.9, 100}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l := newLab()
		kernels := []string{"cfs", "bfs", "eevdf"}[:1+rng.IntN(3)]
		if rng.IntN(3) > 0 {
			l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput(), {Name: "loss", Unit: "%", Better: workloads.LowerIsBetter}}, kernels...)
		}
		l.plan.Design.NoiseFloor = rng.IntN(4) == 0
		for block := 1; block <= rng.IntN(8); block++ {
			if rng.IntN(5) == 0 {
				l.session(time.Duration(rng.IntN(20))*time.Hour, "rerun")
			}
			for _, k := range kernels {
				if l.unproven = ""; rng.IntN(6) == 0 {
					l.unproven = "chance"
				}
				if rng.IntN(6) == 0 {
					l.failed("desk", k, block, "", "")
					continue
				}
				n := l.boot("desk", k, block)
				for r := range rng.IntN(4) {
					x := trial{outcome: []results.Outcome{results.OK, results.OK, results.OK, results.Failed, results.Invalid, results.Interrupted}[rng.IntN(6)]}
					v := workloads.Value{Metric: throughput(), Value: odd[rng.IntN(len(odd))], N: rng.IntN(4), SD: odd[rng.IntN(len(odd))], Resolution: odd[rng.IntN(len(odd))]}
					if rng.IntN(5) == 0 {
						v.Each = []float64{odd[rng.IntN(len(odd))], odd[rng.IntN(len(odd))]}
					}
					x.values = []workloads.Value{v}
					x.activity = &results.Activity{Samples: rng.IntN(2), Switches: odd[rng.IntN(len(odd))], User: odd[rng.IntN(len(odd))]}
					l.try(cell("desk", k, "iperf.to", "default"), block, n, r, x)
				}
			}
		}
		whole(t, fmt.Sprint("seed ", seed), Judge("RUN", l.state(), Options{}))
		a := l.side("A", t0)
		if r, err := CompareRuns(a, a, RunsOptions{Common: true}); err == nil {
			whole(t, fmt.Sprint("runs of seed ", seed), &r.Judgement)
		}
		if _, err := json.Marshal(History([]RunSide{a, a, a}, Selection{})); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

func whole(t *testing.T, name string, j *Judgement) {
	t.Helper()
	b, err := json.Marshal(j)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(string(b), bad) {
			t.Errorf("%s: %q in %s", name, bad, b)
		}
	}
	for _, c := range j.Comparisons {
		if c.Sentence == "" || c.Primary && c.Verdict == "" || strings.Contains(c.Sentence, "()") {
			t.Errorf("%s: %q %q", name, c.Verdict, c.Sentence)
		}
		claim := c.Verdict == stats.Faster || c.Verdict == stats.Slower || c.Verdict == stats.Same
		if claim && min(c.Boots[0], c.Boots[1]) < 4 {
			t.Errorf("%s: a claim from %v boots: %s", name, c.Boots, c.Sentence)
		}
	}
}

// A million values inside the boots cost no more than their sorting.
func TestAMillionValues(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	rng := rand.New(rand.NewPCG(1, 1))
	for b := 1; b <= 5; b++ {
		for _, k := range []string{"cfs", "bfs"} {
			each := make([]float64, 100_000)
			for i := range each {
				each[i] = 100 + rng.NormFloat64()
			}
			l.try(cell("desk", k, "iperf.to", "default"), b, l.boot("desk", k, b), 1, trial{values: []workloads.Value{{Metric: throughput(), Value: 100, Each: each}}})
		}
	}
	s := l.state()
	began := time.Now()
	j := Judge("RUN", s, Options{})
	if d := time.Since(began); d > 3*time.Second {
		t.Errorf("%s", d)
	}
	if c := j.Comparisons[0]; c.Verdict != stats.Same && c.Verdict != stats.NoEvidence {
		t.Error(c.Sentence)
	}
}

// What did not come to a value is told beside what did.
func TestTheRestIsTold(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	for b := 1; b <= 6; b++ {
		l.measure(cell("desk", "cfs", "iperf.to", "default"), b, 100+float64(b%2))
		if b == 3 {
			l.failed("desk", "bfs", b, "kernel", "hung")
			continue
		}
		n := l.boot("desk", "bfs", b)
		l.inBoot(cell("desk", "bfs", "iperf.to", "default"), b, n, 110+float64(b%2))
		if b == 5 {
			l.try(cell("desk", "bfs", "iperf.to", "default"), b, n, 2, trial{outcome: results.Failed, reason: "connection reset"})
		}
	}
	c := judge1(t, l, Options{})
	wants(t, c, stats.Faster, "5 boots against 6")
	said := ""
	for _, f := range c.Findings {
		said += f.Rule + ": " + f.Text + " (" + f.Evidence + ")\n"
	}
	for _, want := range []string{"boots failed: bfs boots in some blocks only", "1 block of 6 failed", "trials missing: not every trial of bfs counts", "1 of 6 without a value: failed: connection reset"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}

// Two matrices of one target may have baselines of their own.
func TestBaselinesOfTwoMatrices(t *testing.T) {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "eevdf", "muqss")
	got := ""
	for _, c := range Judge("RUN", l.state(), Options{}).Comparisons {
		got += c.Kernel + "/" + c.Baseline + " "
	}
	if got != "bfs/cfs muqss/eevdf " {
		t.Error(got)
	}
}
