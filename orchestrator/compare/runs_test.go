package compare

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func (l *lab) side(name string, at time.Time) RunSide {
	return RunSide{Meta: results.RunMeta{Name: name, ID: name, Sweep: "night", Created: at}, State: l.state(),
		Settings: map[string]string{"workload iperf.to (default): duration": "aa"}, Images: map[string]string{"bfs on desk: kernel bfs.img": "11112222", "cfs on desk: kernel cfs.img": "33334444"}}
}

func TestTwoRuns(t *testing.T) {
	a := pair(throughput(), around(100, 5), around(112, 5)).side("A", t0)
	b := pair(throughput(), around(100, 5), around(104, 5)).side("B", t0.Add(24*time.Hour))
	r, err := CompareRuns(a, b, RunsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Comparisons) != 2 || r.ExitStatus() != 1 || r.Family != 2 {
		t.Fatalf("%+v", r)
	}
	wants(t, r.Comparisons[0], stats.Same, "same within 1 %: 0.00 %")
	wants(t, r.Comparisons[1], stats.Slower, "slower: -7.1 %", "5 boots against 5")
	if !mentions(r.Notes, "every kernel booted the same bytes in both runs") {
		t.Errorf("%q", r.Notes)
	}
	b.Images = map[string]string{"bfs on desk: kernel bfs.img": "9999888877776666", "cfs on desk: kernel cfs.img": "33334444"}
	r, err = CompareRuns(a, b, RunsOptions{Selection: Selection{Kernels: []string{"bfs"}}})
	if err != nil || len(r.Comparisons) != 1 || !mentions(r.Images, "kernel bfs on desk: kernel bfs.img has changed (11112222, now 99998888)") ||
		!mentions(r.Notes, "cannot be told apart") {
		t.Errorf("%v, %q, %q", err, r.Images, r.Notes)
	}
	same, err := CompareRuns(a, a, RunsOptions{})
	if err != nil || same.ExitStatus() != 0 || !mentions(same.Notes, "both are the same run") {
		t.Errorf("%v, status %d, %q", err, same.ExitStatus(), same.Notes)
	}
	few := pair(throughput(), around(100, 2), around(100, 2)).side("C", t0)
	r, err = CompareRuns(a, few, RunsOptions{})
	if err != nil || r.ExitStatus() != ExitInconclusive {
		t.Fatal(err, r.ExitStatus())
	}
	wants(t, r.Comparisons[0], stats.Inconclusive, "2 boots of run B and 5 of run A on file, need 4 of each")
	if got := r.Comparisons[0].MoreCommand; !strings.HasPrefix(got, "kernsweep rerun C --more ") {
		t.Errorf("command %q", got)
	}
}

func TestUnequalRunsAreRefused(t *testing.T) {
	a := pair(throughput(), around(100, 5), around(112, 5))
	b := pair(throughput(), around(100, 5), around(112, 5))
	b.cells("desk", "crunch.ltm", "j1", []workloads.Metric{elapsed()}, "cfs", "bfs")
	b.abbaFrom(1, cell("desk", "cfs", "crunch.ltm", "j1"), "bfs", around(10, 5), around(9, 5))
	x, y := a.side("A", t0), b.side("B", t0)
	_, err := CompareRuns(x, y, RunsOptions{})
	var unequal *UnequalError
	if !errors.As(err, &unequal) || !mentions(unequal.Differences, "only in B: desk/bfs/crunch.ltm.j1") || !strings.Contains(err.Error(), "--common compares what they share") {
		t.Fatalf("%v", err)
	}
	r, err := CompareRuns(x, y, RunsOptions{Common: true})
	if err != nil || len(r.Comparisons) != 2 || len(r.LeftOut) != 2 {
		t.Fatalf("%v, %+v", err, r)
	}
	y.Settings = map[string]string{"workload iperf.to (default): duration": "bb"}
	_, err = CompareRuns(x, y, RunsOptions{Common: true})
	if !errors.As(err, &unequal) || !unequal.Nothing || !mentions(unequal.Differences, "iperf.to.default: other parameters: duration") {
		t.Errorf("%v", err)
	}
	other := throughput()
	other.Unit = "Gbit/s"
	_, err = CompareRuns(x, pair(other, around(1, 5), around(1, 5)).side("C", t0), RunsOptions{})
	if !errors.As(err, &unequal) || !mentions(unequal.Differences, `metric throughput was in "Mbit/s" and is in "Gbit/s"`) {
		t.Errorf("%v", err)
	}
	_, err = CompareRuns(x, y, RunsOptions{Selection: Selection{Targets: []string{"nobody"}}})
	if !errors.As(err, &unequal) || !mentions(unequal.Differences, "nothing is selected") {
		t.Errorf("%v", err)
	}
}

func TestAnotherMachineOfTheName(t *testing.T) {
	made := func(serial string) *lab {
		l := newLab()
		l.identity = &targets.Identity{Family: "x86", Product: "OptiPlex 7010", Serial: serial, UUID: "4c4c4544-0048-3210-804b-" + serial + "00000"}
		l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
		l.abba(cell("desk", "cfs", "iperf.to", "default"), "bfs", around(100, 5), around(112, 5))
		return l
	}
	r, err := CompareRuns(made("7HJ2K01").side("A", t0), made("9XX4Z02").side("B", t0), RunsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Machines) != 1 || !strings.Contains(r.Machines[0], "ANOTHER MACHINE goes by the name desk now") {
		t.Errorf("%q", r.Machines)
	}
	wants(t, r.Comparisons[0], stats.Invalid, "invalid: ANOTHER MACHINE")
}

func TestAKernelThatBootsNoMore(t *testing.T) {
	a := pair(throughput(), around(100, 5), around(112, 5))
	b := newLab()
	b.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs", "bfs")
	for i := range 5 {
		b.measure(cell("desk", "cfs", "iperf.to", "default"), i+1, around(100, 5)[i])
		b.failed("desk", "bfs", i+1, "kernel", "hung")
	}
	r, err := CompareRuns(a.side("A", t0), b.side("B", t0), RunsOptions{})
	if err != nil || r.ExitStatus() != 1 {
		t.Fatal(err, r)
	}
	wants(t, r.Comparisons[1], stats.DidNotBoot, "did not boot: bfs in run B stopped at stage kernel (hung)")
}

func TestHistory(t *testing.T) {
	var runs []RunSide
	for i, v := range []float64{100, 101, 102, 0, 104} {
		l := newLab()
		if v == 0 {
			l.cells("desk", "exec.w", "default", []workloads.Metric{elapsed()}, "cfs")
		} else {
			l.cells("desk", "iperf.to", "default", []workloads.Metric{throughput()}, "cfs")
			for b := range 3 {
				l.measure(cell("desk", "cfs", "iperf.to", "default"), b+1, v+0.01*float64((i+b)%2))
			}
		}
		s := l.side(fmt.Sprint("r", i), t0.Add(time.Duration(i)*24*time.Hour))
		if i == 1 {
			s.Settings = map[string]string{"workload iperf.to (default): duration": "bb"}
		}
		runs = append(runs, s)
	}
	rows := History(runs, Selection{})
	if len(rows) != 1 || len(rows[0].Points) != 5 {
		t.Fatalf("%+v", rows)
	}
	r := rows[0]
	if r.Spark != "▁·▅·█" {
		t.Errorf("spark %q", r.Spark)
	}
	if r.Points[1].Median.Missing != "measured in another way: other parameters: duration" || r.Points[3].Median.Missing != "the run has no such cell" {
		t.Errorf("%+v", r.Points)
	}
	if !strings.HasPrefix(r.Sentence, "+0.99 % a run (95 % CI +0.91 % to +1.1 %)") || !strings.HasSuffix(r.Sentence, "3 runs of 5: it gets better") {
		t.Error(r.Sentence)
	}
	if rows := History(runs[:2], Selection{}); !strings.HasPrefix(rows[0].Sentence, "no trend from 1 run of 2, need 3") {
		t.Error(rows[0].Sentence)
	}
	if rows := History(runs, Selection{Workloads: []string{"crunch"}}); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}
