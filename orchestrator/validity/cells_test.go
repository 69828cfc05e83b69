package validity

import (
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func busy(cs, user, system float64) *results.Activity {
	return &results.Activity{Samples: 5, Seconds: 5, Switches: cs, User: user, System: system, Idle: 100 - user - system}
}

// Each case gives the activity of both kernels and the context of the finding:
// "pair", the kernel it is about, or "".
func TestSchedulerCannotMatter(t *testing.T) {
	missing := busy(4.8, 4, 96)
	missing.Missing = []string{"cs"}
	doubtful := busy(4.8, 4, 96)
	doubtful.Warnings = []string{"CPU shares are doubtful: 139 ticks a second were counted on each CPU, 100 are due"}
	for _, c := range []struct {
		name     string
		cfs, bfs *results.Activity
		cpus     int
		want     string
	}{
		{"both, as on the router of 2009", busy(4.8, 4, 96), busy(6, 3, 97), 1, "pair"},
		{"one of the two", busy(4.8, 4, 96), busy(2000, 3, 97), 1, "cfs"},
		{"many", busy(1400, 4, 96), busy(2000, 3, 97), 1, ""},
		{"just enough", busy(10, 4, 96), busy(10, 3, 97), 1, ""},
		{"40 a second, on 8 busy CPUs", busy(40, 100, 0), busy(40, 100, 0), 8, "pair"},
		{"40 a second, on 8 CPUs of which one is busy", busy(40, 12.5, 0), busy(40, 12.5, 0), 8, ""},
		{"none at all on an idle machine", busy(0, 0, 0), busy(0, 0, 0), 1, "pair"},
		{"the number of CPUs is not known", busy(4.8, 4, 96), busy(4.8, 4, 96), 0, "pair"},
		{"nothing on file", nil, nil, 1, ""},
		{"no samples", &results.Activity{}, &results.Activity{}, 1, ""},
		{"no such column", missing, missing, 1, ""},
		{"ticks that do not add up", doubtful, doubtful, 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := iperfRig(t, func(_ string, rec *targets.BootRecord) { rec.CPUs = c.cpus }, map[string]*results.Activity{"cfs": c.cfs, "bfs": c.bfs}, nil)
			got := r.found("scheduler cannot matter")
			switch c.want {
			case "":
				none(t, got)
			case "pair":
				f := one(t, got)
				if f.Hard || f.Kernel != "bfs" || f.Against != "cfs" || !strings.Contains(f.Text, "not attributable to scheduling decisions") {
					t.Errorf("%+v", f)
				}
			default:
				if f := one(t, got); f.Kernel != c.want || f.Against != "" {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestCPUNotTheBottleneck(t *testing.T) {
	for _, c := range []struct {
		name       string
		workload   string
		scenario   string
		metrics    []string
		cpus       int
		idle, wait float64
		want       bool
	}{
		{"iperf, 40 % idle", "iperf.lan", "default", []string{"throughput"}, 1, 40, 0, true},
		{"iperf, waiting", "iperf.lan", "default", []string{"throughput"}, 1, 1, 6, true},
		{"iperf, full", "iperf.lan", "default", []string{"throughput"}, 1, 4.9, 0, false},
		{"iperf, one of four CPUs full", "iperf.lan", "default", []string{"throughput"}, 4, 74, 0, false},
		{"iperf, less than one of four CPUs busy", "iperf.lan", "default", []string{"throughput"}, 4, 90, 0, true},
		{"iperf, CPUs not known", "iperf.lan", "default", []string{"throughput"}, 0, 40, 0, true},
		{"a build for all CPUs", "kernbench.k", "optimal", []string{"elapsed", "user", "system"}, 4, 9.4, 0, true},
		{"a build of one job", "kernbench.k", "single", []string{"elapsed", "user", "system"}, 4, 75.5, 0, false},
		{"a build of one job that waits for the disk", "kernbench.k", "single", []string{"elapsed", "user", "system"}, 4, 75, 15, true},
		{"a build for half of the CPUs", "kernbench.k", "half", []string{"elapsed", "user", "system"}, 4, 51, 0, false},
		{"a build of unknown jobs", "kernbench.k", "default", []string{"elapsed", "user", "system"}, 4, 51, 0, false},
		{"one task after another on two CPUs", "crunch.ltm", "j1", []string{"makespan", "A.user", "A.wall", "B.user", "B.wall"}, 2, 50.5, 0, false},
		{"the same on one CPU with disk", "crunch.ltm", "j1", []string{"makespan", "A.user", "A.wall", "B.user", "B.wall"}, 1, 0, 7, true},
		{"the last of several tasks", "crunch.ltm", "j3", []string{"makespan", "A.user", "A.wall", "B.user", "B.wall"}, 2, 20, 0, false},
		{"latency is idle by design", "latency.l", "default", []string{"p99"}, 1, 90, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			ms := metrics(workloads.LowerIsBetter, c.metrics...)
			r.cell("x", c.workload, c.scenario, ms, "cfs", "bfs")
			v := []float64{20, 10, 10, 10, 10}
			if c.scenario == "j3" {
				v = []float64{10, 9, 10, 9, 10}
			}
			for _, k := range []string{"cfs", "bfs"} {
				n := r.boot("x", k, func(rec *targets.BootRecord) { rec.CPUs = c.cpus })
				a := busy(500, 100-c.idle-c.wait, 0)
				a.Idle, a.Wait = c.idle, c.wait
				r.trial(cellOf("x", k, c.workload, c.scenario), n, 1, values(ms, v...), a)
			}
			got := r.found("CPU not the bottleneck")
			if (len(got) == 2) != c.want || len(got) == 1 {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestNothingToChoose(t *testing.T) {
	for _, c := range []struct {
		name     string
		scenario string
		cpus     int
		v        []float64 // makespan, then user and wall of three tasks
		want     string
	}{
		{"one after another", "any", 2, []float64{30, 10, 10, 10, 10, 10, 10}, "one task at a time"},
		{"at once on two CPUs", "any", 2, []float64{15, 10, 15, 10, 15, 10, 15}, ""},
		{"at once on as many CPUs", "any", 3, []float64{10, 10, 10, 10, 10, 10, 10}, ""},
		{"at once on more CPUs", "any", 8, []float64{10, 10, 10, 10, 10, 10, 10}, "3 tasks on 8 CPUs"},
		{"no values", "any", 8, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, false)
			ms := metrics(workloads.LowerIsBetter, "makespan", "A.user", "A.wall", "B.user", "B.wall", "C.user", "C.wall")
			r.cell("x", "crunch.ltm", c.scenario, ms, "cfs", "bfs")
			for _, k := range []string{"cfs", "bfs"} {
				n := r.boot("x", k, func(rec *targets.BootRecord) { rec.CPUs = c.cpus })
				r.trial(cellOf("x", k, "crunch.ltm", c.scenario), n, 1, values(ms, c.v...), nil)
			}
			got := r.found("nothing to choose")
			if c.want == "" {
				none(t, got)
				return
			}
			if f := one(t, got); f.Kernel != "" || !strings.Contains(f.Text, c.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestLinkIsFull(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		net  string
		want bool
	}{
		{"93 of 100", 93, "/sys/class/net/eth0/speed=100\n", true},
		{"the router's 23 of 100", 23, "/sys/class/net/eth0/speed=100\n", false},
		{"over the other of two", 93, "/sys/class/net/eth0/speed=1000\n/sys/class/net/eth1/speed=100\n", true},
		{"faster than the interface", 400, "/sys/class/net/eth0/speed=100\n", false},
		{"a virtual one does not know", 93, "/sys/class/net/eth0/speed=-1\n", false},
		{"nonsense", 93, "=\nspeed\n/speed=1e999\n\x00\n", false},
		{"not on file", 93, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := iperfRig(t, nil, nil, map[string]float64{"cfs": c.rate, "bfs": 10})
			if c.net != "" {
				r.file("ap", 1, "probe/net", c.net)
			}
			if got := r.found("link is full"); (len(got) == 1) != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestOneBootOnly(t *testing.T) {
	ms := metrics(workloads.HigherIsBetter, "throughput")
	build := func(t *testing.T, ended bool, boots ...int) *rig {
		r := newRig(t, false)
		r.cell("x", "iperf.lan", "default", ms, "cfs")
		r.add(results.Record{Lane: "x", Kind: results.KindLane, Note: results.NoteBegan})
		for i, b := range boots {
			for r.last["x"] < b {
				r.boot("x", "cfs", nil)
			}
			r.trial(cellOf("x", "cfs", "iperf.lan", "default"), b, i+1, values(ms, 15), nil)
		}
		if ended {
			r.add(results.Record{Lane: "x", Kind: results.KindLane, Note: results.NoteEnded})
		}
		return r
	}
	if f := one(t, build(t, true, 1, 1, 1).found("one boot only")); !strings.Contains(f.Text, "all 3 trials ran in one boot") {
		t.Errorf("%+v", f)
	}
	none(t, build(t, true, 1, 2, 3).found("one boot only"))
	none(t, build(t, false, 1, 1).found("one boot only")) // it is at work
	none(t, build(t, true).found("one boot only"))
}

// The vmstat of 2009 was of one device, the claim of another.
func TestActivityOfAnotherTarget(t *testing.T) {
	ms := metrics(workloads.HigherIsBetter, "throughput")
	for _, imported := range []bool{true, false} {
		r := newRig(t, imported)
		r.cell("ar2317", "iperf.up", "default", ms, "cfs", "bfs")
		r.cell("wl500", "iperf.up", "default", ms, "cfs")
		r.trial(cellOf("ar2317", "cfs", "iperf.up", "default"), 1, 1, values(ms, 15), nil)
		r.trial(cellOf("ar2317", "bfs", "iperf.up", "default"), 2, 1, values(ms, 16.6), nil)
		r.trial(cellOf("wl500", "cfs", "iperf.up", "default"), 1, 1, values(ms, 23), busy(4.8, 4, 96))
		got := r.found("activity of another target")
		if !imported {
			none(t, got)
			continue
		}
		if f := one(t, got); f.Target != "ar2317" || !strings.Contains(f.Text, "is of wl500") {
			t.Errorf("%+v", f)
		}
	}
}
