package compare

import (
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

func caveats(c *Comparison) string {
	for _, f := range c.Findings {
		if f.Rule == "read with care" {
			return f.Text
		}
	}
	return ""
}

// Two days that contradict each other make one mean that neither shows.
func TestSessionsThatDisagree(t *testing.T) {
	base := cell("desk", "cfs", "iperf.to", "default")
	l := pair(throughput(), around(100, 5), around(103, 5))
	l.session(9*time.Hour, "rerun of whole blocks")
	l.abbaFrom(6, base, "bfs", around(100, 5), around(90, 5))
	c := judge1(t, l, Options{})
	if got := caveats(&c); !strings.Contains(got, "the sessions disagree about the difference") {
		t.Errorf("%q: %+v", got, c.Findings)
	}
	c = judge1(t, pair(throughput(), around(100, 5), around(103, 5)), Options{})
	if got := caveats(&c); got != "" {
		t.Errorf("a plain comparison: %q", got)
	}
	same := []float64{100, 100, 100, 100}
	c = judge1(t, pair(throughput(), same, []float64{110, 110, 110, 110}), Options{})
	if got := caveats(&c); !strings.Contains(got, "no spread was seen") {
		t.Errorf("%q", got)
	}
}

// Each run numbers its own boots: their order across runs says nothing.
func TestOrderAcrossRunsSaysNothing(t *testing.T) {
	run := func(name string, before int) RunSide {
		l := newLab()
		l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs")
		l.boots["desk"] = before // that failed, or were of another kernel
		for i, v := range around(100, 4) {
			l.measure(cell("desk", "cfs", "iperf.to", "default"), i+1, v)
		}
		return RunSide{Meta: results.RunMeta{Name: name, ID: name}, State: l.state()}
	}
	j, err := CompareRuns(run("A", 0), run("B", 10), RunsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c := j.Comparisons[0]; c.Note != "" || c.MixedUp {
		t.Errorf("mixed up %v: %q", c.MixedUp, c.Note)
	}
}

// A series that steps inside each boot is of two states; one that only scatters
// is not.
func TestLevelThatChangesInsideABoot(t *testing.T) {
	base := cell("desk", "cfs", "iperf.to", "default")
	series := func(late float64) *lab {
		l := newLab()
		l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
		for block := 1; block <= 4; block++ {
			for _, k := range []string{"cfs", "bfs"} {
				c := base
				c.Kernel = k
				var v []float64
				for i, x := range around(100, 20) {
					if i >= 12 {
						x *= late
					}
					v = append(v, x)
				}
				l.measure(c, block, v...)
			}
		}
		return l
	}
	told := func(l *lab) (n int) {
		for _, f := range judge1(t, l, Options{}).Findings {
			if f.Rule == "level changed" {
				n++
				if !strings.Contains(f.Evidence, "in 4 of 4 boots, first in boot ") || !strings.Contains(f.Evidence, "from value 13 of 20 on") {
					t.Error(f.Evidence)
				}
			}
		}
		return n
	}
	if n := told(series(0.5)); n != 2 {
		t.Errorf("a step was told %d times, want once for each kernel", n)
	}
	if n := told(series(1)); n != 0 {
		t.Errorf("a step was told %d times where there is none", n)
	}
}
