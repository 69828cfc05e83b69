package compare

import (
	"math"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// two workloads measured in the same boots: iperf with one scenario, crunch with
// two of lower-is-better.
func twoWorkloads(blocks int, gain float64) *lab {
	l := newLab()
	l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	l.cells("desk", "crunch.ltm", "j1", []workloads.Metric{elapsed()}, "cfs", "bfs")
	l.cells("desk", "crunch.ltm", "j3", []workloads.Metric{elapsed()}, "cfs", "bfs")
	for b := 1; b <= blocks; b++ {
		order := []string{"cfs", "bfs"}
		if b%2 == 0 {
			order = []string{"bfs", "cfs"}
		}
		for _, k := range order {
			l.block(k, b, map[bool]float64{true: gain, false: 1}[k == "bfs"])
		}
	}
	return l
}

func (l *lab) block(kernel string, b int, g float64) {
	n := l.boot("desk", kernel, b)
	noise := 1 + 0.002*float64(b%3)
	l.inBoot(cell("desk", kernel, "iperf.to", "default"), b, n, 100*g*noise)
	l.inBoot(cell("desk", kernel, "crunch.ltm", "j1"), b, n, 50/g*noise)
	l.inBoot(cell("desk", kernel, "crunch.ltm", "j3"), b, n, 20*noise)
}

func TestOverall(t *testing.T) {
	j := Judge("RUN", twoWorkloads(5, 1.1).state(), Options{})
	if len(j.Overall) != 1 {
		t.Fatalf("%+v", j.Overall)
	}
	o := j.Overall[0]
	want := math.Pow(1.1, 0.75) - 1 // iperf counts half, crunch the mean of 10 % and none
	if math.Abs(o.Gain.Value-want) > 1e-9 || o.Blocks != 5 || len(o.Workloads) != 2 {
		t.Errorf("%+v, want a gain of %g", o, want)
	}
	if !strings.HasPrefix(o.Sentence, "bfs +7.4 % over 2 workloads (95 % CI +7.4 to +7.4 %; above 0 is better), 5 blocks") {
		t.Error(o.Sentence)
	}

	l := twoWorkloads(1, 1.1)
	if o := Judge("RUN", l.state(), Options{}).Overall[0]; o.Gain.OK() || !strings.Contains(o.Sentence, "1 block in which every primary cell is valid for both kernels, need 2") {
		t.Error(o.Sentence)
	}
	for _, few := range []int{2, 3} { // the interval is all above 0, and says nothing of other boots
		o := Judge("RUN", twoWorkloads(few, 1.1).state(), Options{}).Overall[0]
		if !o.Gain.OK() || !strings.HasSuffix(o.Sentence, ": no claim, need 4 blocks") {
			t.Error(o.Sentence)
		}
	}
	l = twoWorkloads(4, 1.1)
	l.cells("desk", "exec.w", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	if o := Judge("RUN", l.state(), Options{}).Overall[0]; o.Gain.OK() || !strings.Contains(o.Sentence, "no overall figure: exec.w.default cannot enter it: n/a") {
		t.Error(o.Sentence)
	}
	l.cells("desk", "crunch.ltm", "j1", []workloads.Metric{elapsed()}, "cfs", "late")
	l.cells("desk", "crunch.ltm", "j3", []workloads.Metric{elapsed()}, "cfs", "late")
	if j := Judge("RUN", l.state(), Options{}); len(j.Overall) != 2 || mentions(j.Notes, "do not rank") {
		t.Errorf("figures that nobody has are ranked: %+v %q", j.Overall, j.Notes)
	}
	l = twoWorkloads(4, 1.1) // block 4's bfs again, another day: that block does not count
	l.session(9*time.Hour, "rerun")
	l.block("bfs", 4, 3)
	o = Judge("RUN", l.state(), Options{}).Overall[0]
	if o.Blocks != 3 || math.Abs(o.Gain.Value-want) > 1e-9 {
		t.Errorf("%d blocks, %+v", o.Blocks, o.Gain)
	}
	l = twoWorkloads(4, 1.1) // a third kernel that does not run everything
	l.cells("desk", "crunch.ltm", "j1", []workloads.Metric{elapsed()}, "cfs", "late")
	l.cells("desk", "crunch.ltm", "j3", []workloads.Metric{elapsed()}, "cfs", "late")
	for b := 1; b <= 4; b++ {
		n := l.boot("desk", "late", b)
		l.inBoot(cell("desk", "late", "crunch.ltm", "j1"), b, n, 50)
		l.inBoot(cell("desk", "late", "crunch.ltm", "j3"), b, n, 20)
	}
	if j := Judge("RUN", l.state(), Options{}); !mentions(j.Notes, "do not rank the kernels against each other") {
		t.Errorf("%q", j.Notes)
	}
}

func TestWhatMovedIsAnAssociation(t *testing.T) {
	l := newLab()
	ctx := workloads.Metric{Name: "nvcsw", Unit: "count", Better: workloads.Informative}
	l.cells("desk", "exec.w", "default", []workloads.Metric{elapsed(), ctx}, "cfs", "bfs")
	delay := 12.0
	for b := 1; b <= 5; b++ {
		for _, k := range []string{"cfs", "bfs"} {
			f := 1.0
			if k == "bfs" {
				f = 4
			}
			l.try(cell("desk", k, "exec.w", "default"), b, l.boot("desk", k, b), 1, trial{
				values: []workloads.Value{{Metric: elapsed(), Value: (10 + 0.01*float64(b)) / math.Sqrt(f)}, {Metric: ctx, Value: 1000 * f}},
				activity: &results.Activity{Samples: 10, Switches: 120 * f, Interrupts: 250 + float64(b), User: 60, System: 20 + f, Idle: 20 - f,
					RunDelay: &delay, Missing: []string{"st", "timeslices"}},
			})
		}
	}
	c := judge1(t, l, Options{})
	if c.Verdict != stats.Inconclusive && c.Verdict != stats.Faster {
		t.Fatalf("%s", c.Sentence)
	}
	got := map[string]string{}
	for _, m := range c.Moved {
		got[m.Counter] = m.Sentence
		if strings.Contains(m.Sentence, "because") || strings.Contains(m.Sentence, "cause") {
			t.Errorf("a cause: %s", m.Sentence)
		}
		if !m.Clear {
			t.Errorf("%s is not clear", m.Counter)
		}
	}
	if len(c.Moved) != 4 || got["context switches"] != "context switches went with it: 120/s with cfs, 480/s with bfs (their boots do not overlap)" ||
		got["nvcsw"] == "" || got["idle share"] == "" {
		t.Errorf("%q", got)
	}
	c = judge1(t, pair(throughput(), around(100, 6), around(99.9, 6)), Options{})
	if len(c.Moved) != 0 {
		t.Errorf("something moved with no difference: %+v", c.Moved)
	}
}

// Counters differ between any two kernels. They are told beside a difference
// only, and with few boots nothing is made of their not overlapping.
func TestNothingMovesBesideNoDifference(t *testing.T) {
	build := func(boots int, gain float64) *lab {
		l := newLab()
		l.cells("desk", "exec.w", "default", []workloads.Metric{elapsed()}, "cfs", "bfs")
		for b := 1; b <= boots; b++ {
			for k, f := range map[string]float64{"cfs": 1, "bfs": gain} {
				l.try(cell("desk", k, "exec.w", "default"), b, l.boot("desk", k, b), 1, trial{
					values:   []workloads.Value{{Metric: elapsed(), Value: (10 + 0.001*float64(b)) * f}},
					activity: &results.Activity{Samples: 10, Switches: 1000 * f * f, Missing: []string{"in", "us", "sy", "id", "wa", "st"}},
				})
			}
		}
		return l
	}
	if c := judge1(t, build(5, 1.001), Options{}); len(c.Moved) != 0 {
		t.Errorf("%s: %+v", c.Sentence, c.Moved)
	}
	c := judge1(t, build(3, 1.2), Options{})
	if len(c.Moved) != 1 || c.Moved[0].Clear || !strings.Contains(c.Moved[0].Sentence, "too few boots to tell") {
		t.Errorf("%+v", c.Moved)
	}
	if c = judge1(t, build(4, 1.2), Options{}); len(c.Moved) != 1 || !c.Moved[0].Clear {
		t.Errorf("%+v", c.Moved)
	}
}

// 200 cells of two kernels are judged in a fraction of a second.
func BenchmarkJudge200Cells(b *testing.B) {
	l := newLab()
	for i := range 20 {
		for _, s := range []string{"s0", "s1", "s2", "s3", "s4"} {
			target := "t" + string(rune('a'+i))
			l.cells(target, "iperf.to", s, []workloads.Metric{throughput(), elapsed()}, "cfs", "bfs")
		}
	}
	boots := map[string]int{}
	for _, c := range l.plan.Cells {
		for block := 1; block <= 5; block++ {
			k := c.Target + c.Kernel + string(rune('0'+block))
			if boots[k] == 0 {
				boots[k] = l.boot(c.Target, c.Kernel, block)
			}
			for r := 1; r <= 3; r++ {
				s := results.Slot{Cell: c.Cell, Block: block, Boot: boots[k], Repeat: r}
				l.add(results.Record{Lane: c.Target, Slot: &s, Attempt: 1, Kind: results.KindJudged, Outcome: results.OK,
					Parsed: &workloads.Parsed{Values: []workloads.Value{{Metric: throughput(), Value: 100 + float64((block*7+r)%5)}, {Metric: elapsed(), Value: 3}}}})
			}
		}
	}
	s := l.state()
	b.ResetTimer()
	for b.Loop() {
		if j := Judge("RUN", s, Options{}); len(j.Comparisons) != 200 {
			b.Fatal(len(j.Comparisons))
		}
	}
}
