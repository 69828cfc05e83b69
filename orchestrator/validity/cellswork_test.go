package validity

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"kernsweep/targets"
	"kernsweep/workloads"
)

var ltmMetrics = []string{"LTMM.user", "LTMM.wall", "LTMB.user", "LTMB.wall", "LTBM.user", "LTBM.wall"}

// ltm2007 are the seconds of May 2007: user and wall of three tasks, one after
// another and at once, on two CPUs.
func ltm2007() map[string][2][]float64 {
	return map[string][2][]float64{
		"cfs-v9":   {{8334.37, 8388, 11647.24, 11717, 10984.06, 11058}, {5472.4, 7459, 7519.84, 9494, 8700.88, 12373}},
		"cfs-v7":   {{5690.27, 5715, 7838.12, 7869, 7899.38, 7939}, {5396.31, 9719, 7559, 10922, 7558.41, 9576}},
		"cfs-v6":   {{5655.07, 5682, 7729.81, 7755, 7720.7, 7746}, {5437.84, 5531, 7470.1, 10244, 7567.09, 10362}},
		"sd-048":   {{5309.64, 5320, 7311.68, 7323, 7344.96, 7357}, {5517.64, 8630, 7564.44, 10591, 7589.05, 10235}},
		"sd-046":   {{5556.44, 5583, 7611, 7626, 7431.06, 7452}, {5446.86, 8037, 7573.16, 10109, 7539.83, 10600}},
		"2.6.21.1": {{5417.62, 5439, 7438.31, 7461, 7452.8, 7481}, {5422.37, 7132, 7620.72, 11087, 7484.19, 9570}},
	}
}

func ltmRig(t *testing.T, cpus int, table map[string][2][]float64, makespan bool) *rig {
	r := newRig(t, cpus == 0)
	names := ltmMetrics
	if makespan {
		names = append(append([]string{}, names...), "makespan")
	}
	ms := metrics(workloads.LowerIsBetter, names...)
	var kernels []string
	for k := range table {
		kernels = append(kernels, k)
	}
	for _, sc := range []string{"j1", "j3"} {
		r.cell("dual", "crunch.ltm", sc, ms, kernels...)
	}
	for k, rows := range table {
		n := r.boot("dual", k, func(rec *targets.BootRecord) { rec.CPUs = cpus })
		for i, sc := range []string{"j1", "j3"} {
			v := append([]float64{}, rows[i]...)
			sum, longest := v[1]+v[3]+v[5], max(v[1], v[3], v[5])
			if makespan {
				v = append(v, []float64{sum, longest}[i])
			}
			r.trial(cellOf("dual", k, "crunch.ltm", sc), n, 1, values(ms, v...), nil)
		}
	}
	return r
}

func TestSameWorkOf2007(t *testing.T) {
	for _, cpus := range []int{0, 2} { // imported, and measured
		for _, makespan := range []bool{true, false} {
			r := ltmRig(t, cpus, ltm2007(), makespan)
			f := one(t, r.found("same work, different user time"))
			if !f.Hard || f.Kernel != "cfs-v9" || f.Scenario != "" || !strings.Contains(f.Evidence, "1.4274") || !strings.Contains(f.Text, "more user time one after another") {
				t.Errorf("%+v", f)
			}
			f = one(t, r.found("CPU kept"))
			if f.Hard || f.Kernel != "cfs-v6" || f.Scenario != "j3" || !strings.Contains(f.Evidence, "in 1 of 1 trials, first: LTMM 98.3 %, LTMB 72.9 %, LTBM 73.0 % of a CPU each, on 2 CPUs") {
				t.Errorf("%+v", f)
			}
			none(t, r.found("impossible makespan"))
		}
	}
}

func TestSameWork(t *testing.T) {
	row := func(a, b, c float64) []float64 { return []float64{a, a, b, b, c, c} }
	twice := func(a, b, c float64) []float64 { return []float64{a, 2 * a, b, 2 * b, c, 2 * c} }
	for _, c := range []struct {
		name     string
		seq, par []float64
		change   func(*rig)
		want     string // "", "hard", "soft"
	}{
		{"alike", row(10, 10, 10), twice(10, 10, 10), nil, ""},
		{"4.9 % more", row(10.49, 10.49, 10.49), twice(10, 10, 10), nil, ""},
		{"5.1 % more", row(10.51, 10.51, 10.51), twice(10, 10, 10), nil, "hard"},
		{"all take more at once", row(9, 9, 9), twice(10, 10, 10), nil, "hard"},
		{"those that share memory take more at once", row(10, 8, 8), twice(10, 10, 10), nil, "soft"},
		{"nothing measured", nil, nil, nil, ""},
		{"one side missing", row(10, 10, 10), nil, nil, ""},
		{"zeros", row(0, 0, 0), twice(0, 0, 0), nil, ""},
		{"no finite number", row(math.NaN(), 10, 10), twice(10, math.Inf(1), 10), nil, ""},
		{"other work, as its results prove", row(20, 20, 20), twice(10, 10, 10), func(r *rig) {
			for i := range r.recs {
				if p := r.recs[i].Parsed; p != nil {
					p.Notes = []string{fmt.Sprintf("checksum of LTMM: %v", p.Values[0].Value)}
				}
			}
		}, ""},
		{"a core's two threads", row(8, 8, 8), twice(10, 10, 10), func(r *rig) {
			for i := range r.recs {
				if b := r.recs[i].Boot; b != nil {
					b.Record.CPUFreq["smt"] = "1"
				}
			}
		}, "soft"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			ms := metrics(workloads.LowerIsBetter, ltmMetrics...)
			for i, sc := range []string{"j1", "j3"} {
				r.cell("dual", "crunch.ltm", sc, ms, "cfs")
				n := r.boot("dual", "cfs", nil)
				r.trial(cellOf("dual", "cfs", "crunch.ltm", sc), n, 1, values(ms, [][]float64{c.seq, c.par}[i]...), nil)
			}
			if c.change != nil {
				c.change(r)
			}
			for rule, want := range map[string]bool{"same work, different user time": c.want == "hard", "same work, shared caches": c.want == "soft"} {
				if got := r.found(rule); (len(got) == 1) != want || want && got[0].Hard != (c.want == "hard") {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

func TestSameBuild(t *testing.T) {
	ms := metrics(workloads.LowerIsBetter, "elapsed", "user", "system")
	for _, c := range []struct {
		single, optimal float64
		want            bool
	}{{100, 104, false}, {100, 112, true}, {112, 100, true}, {0, 100, false}} {
		r := newRig(t, false)
		for i, sc := range []string{"single", "optimal"} {
			r.cell("dual", "kernbench.k", sc, ms, "cfs")
			n := r.boot("dual", "cfs", nil)
			r.trial(cellOf("dual", "cfs", "kernbench.k", sc), n, 1, values(ms, 50, []float64{c.single, c.optimal}[i], 3), nil)
		}
		got := r.found("same work, shared caches")
		if (len(got) == 1) != c.want || len(got) > 0 && got[0].Hard {
			t.Errorf("%v: %+v", c, got)
		}
		none(t, r.found("same work, different user time"))
	}
}

func TestImpossibleMakespan(t *testing.T) {
	ms := metrics(workloads.LowerIsBetter, "A.user", "A.wall", "B.user", "B.wall", "C.user", "C.wall", "makespan")
	for _, c := range []struct {
		name string
		cpus int
		v    []float64
		want bool
	}{
		{"two CPUs full", 2, []float64{10, 15, 10, 15, 10, 15, 15}, false},
		{"more than two CPUs can", 2, []float64{10, 12, 10, 12, 10, 12, 12}, true},
		{"sooner than its longest task", 8, []float64{10, 10, 20, 15, 10, 10, 15}, true},
		{"CPUs not known", 0, []float64{10, 12, 10, 12, 10, 12, 12}, false},
		{"within the ticks", 2, []float64{10, 14.98, 10, 14.98, 10, 14.98, 14.98}, false},
		{"nothing", 2, nil, false},
		{"not finite", 2, []float64{math.NaN(), 12, 10, 12, 10, 12, 12}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.cell("x", "crunch.ltm", "j3", ms, "cfs")
			n := r.boot("x", "cfs", func(rec *targets.BootRecord) { rec.CPUs = c.cpus })
			r.trial(cellOf("x", "cfs", "crunch.ltm", "j3"), n, 1, values(ms, c.v...), nil)
			if got := r.found("impossible makespan"); (len(got) == 1) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A task that is longer than the others has a CPU to itself in the end: that is
// fair.
func TestCPUKept(t *testing.T) {
	ms := metrics(workloads.LowerIsBetter, "A.user", "A.wall", "B.user", "B.wall", "C.user", "C.wall")
	for _, c := range []struct {
		name string
		cpus int
		v    []float64
		want bool
	}{
		{"fair", 2, []float64{10, 15, 10, 15, 10, 15}, false},
		{"one kept a CPU", 2, []float64{10, 10.1, 10, 15, 10, 20}, true},
		{"one is long", 2, []float64{100, 101.5, 3, 4.5, 3, 4.5}, false},
		{"a CPU for each", 3, []float64{10, 10.1, 10, 15, 10, 10.1}, false},
		{"one CPU for all", 1, []float64{10, 30, 10, 30, 10, 30}, false},
		{"no walls", 2, []float64{10, 0, 10, 0, 10, 0}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			r.cell("x", "crunch.ltm", "j3", ms, "cfs")
			n := r.boot("x", "cfs", func(rec *targets.BootRecord) { rec.CPUs = c.cpus })
			r.trial(cellOf("x", "cfs", "crunch.ltm", "j3"), n, 1, values(ms, c.v...), nil)
			if got := r.found("CPU kept"); (len(got) == 1) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestFairShares(t *testing.T) {
	for _, c := range []struct {
		users []float64
		cpus  int
		want  []float64
	}{
		{[]float64{10, 10, 10}, 2, []float64{2. / 3, 2. / 3, 2. / 3}},
		{[]float64{1, 9}, 1, []float64{0.5, 0.9}},
		{[]float64{9, 1}, 2, []float64{1, 1}},
		{nil, 2, nil},
	} {
		got := fairShares(c.users, c.cpus)
		for i := range c.want {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%v on %d: %v, want %v", c.users, c.cpus, got, c.want)
			}
		}
	}
}

func TestSumOfParallelTimes(t *testing.T) {
	ms := metrics(workloads.LowerIsBetter, append(append([]string{}, ltmMetrics...), "total.wall")...)
	for _, c := range []struct {
		scenario string
		want     bool
	}{{"j1", false}, {"j3", true}, {"j3big", true}, {"default", false}} {
		r := newRig(t, true)
		r.cell("dual", "crunch.ltm", c.scenario, ms, "cfs", "sd")
		for i, k := range []string{"cfs", "sd"} {
			r.trial(cellOf("dual", k, "crunch.ltm", c.scenario), i+1, 1, values(ms, 1, 2, 1, 2, 1, 2, 6), nil)
		}
		got := r.found("sum of parallel times")
		if (len(got) == 1) != c.want || c.want && (got[0].Metric != "total.wall" || got[0].Kernel != "") {
			t.Errorf("%s: %+v", c.scenario, got)
		}
	}
}
