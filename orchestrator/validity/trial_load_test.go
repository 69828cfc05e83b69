package validity

import (
	"testing"

	"kernsweep/workloads"
	"kernsweep/workloads/wire"
)

func loadChanges() map[string][]trialCase {
	last := func(s wire.Snapshot) func(*Evidence) { return func(e *Evidence) { e.Spool.Snapshots[1] = s } }
	peer := func(do func(*wire.Spool)) func(*Evidence) {
		return func(e *Evidence) { e.Workload = "iperf"; do(e.Peer) }
	}
	value := func(v workloads.Value) func(*Evidence) {
		return func(e *Evidence) { e.Parsed.Values = []workloads.Value{v} }
	}
	time := workloads.Metric{Name: "elapsed", Unit: "s", Primary: true}
	return map[string][]trialCase{
		"steal": {
			{"5 %", last(snapshot(110*second, 1, 950, 0, 0, 0, 50)), "took 5.0 % of the CPU time (steal)", ""},
			{"1 %", last(snapshot(110*second, 1, 985, 0, 0, 5, 10)), "", ""},
			{"a kernel without the column", func(e *Evidence) {
				e.Spool.Snapshots[0].Stat, e.Spool.Snapshots[1].Stat = []byte("cpu 0 0 0 0\ncpu0 0 0 0 0\n"), []byte("cpu 900 0 0 100\ncpu0 900 0 0 100\n")
			}, "", "does not tell what the hypervisor took"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"busy before the start": {
			{"3 and the agent's", func(e *Evidence) { e.Spool.Snapshots[0] = snapshot(100*second, 5, 0, 0, 0, 0, 0) }, "3 other tasks", ""},
			{"the agent's", func(e *Evidence) { e.Spool.Snapshots[0] = snapshot(100*second, 2, 0, 0, 0, 0, 0) }, "", ""},
			{"not told", func(e *Evidence) { e.Spool.Snapshots[0].Stat = nil }, "", "does not tell how many"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"other tasks running": {
			{"a third", func(e *Evidence) { e.Spool.Tasks[1].UserUS = 3_300_000 }, "other tasks took 32.9 %", ""},
			{"1 %", func(e *Evidence) { e.Spool.Tasks[1].UserUS -= 200_000 }, "", ""},
			{"the kernel's threads in a network trial", func(e *Evidence) {
				e.Workload, e.Spool.Snapshots[1] = "iperf", snapshot(110*second, 1, 5, 500, 300, 195, 0)
				e.Spool.Tasks = []wire.Task{{UserUS: 50_000}}
			}, "", ""},
			{"a program in a network trial", func(e *Evidence) {
				e.Workload, e.Spool.Tasks = "iperf", []wire.Task{{UserUS: 50_000}}
			}, "other programs took 98", ""},
			{"ticks that do not add up", last(snapshot(110*second, 1, 400, 0, 0, 0, 0)), "", "do not add up"},
			{"rusage unknown", func(e *Evidence) { e.Spool.Tasks[0].Missing = []string{"stime_us"} }, "", "is not known"},
			{"the agent's unknown", func(e *Evidence) { delete(e.Spool.End, "cpu_us") }, "", "CPU time of the agent is not known"},
			{"no task", func(e *Evidence) { e.Spool.Tasks = nil }, "", "no process"},
			{"one snapshot", func(e *Evidence) { e.Spool.Snapshots = e.Spool.Snapshots[:1] }, "", "does not tell what its CPUs did"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"too short": {
			{"20 steps", value(workloads.Value{Metric: time, Value: 0.2, Resolution: 0.01}), "elapsed is too short", ""},
			{"50 steps", value(workloads.Value{Metric: time, Value: 0.5, Resolution: 0.01}), "", ""},
			{"exact", value(workloads.Value{Metric: time, Value: 0.0002}), "", ""},
			{"missing", value(workloads.Value{Metric: time, Missing: "failed", Resolution: 0.01}), "", ""},
			{"a rate", value(workloads.Value{Metric: workloads.Metric{Name: "t", Unit: "Mbit/s", Primary: true}, Value: 0.1, Resolution: 0.1}), "", ""},
			{"nothing read", func(e *Evidence) { e.Parsed = nil }, "", "no figure"}},
		"tasks did not run": {
			{"half idle", last(snapshot(110*second, 1, 500, 0, 0, 500, 0)), "not bound by the CPU: its tasks left 50 % idle", ""},
			{"one after the other", func(e *Evidence) {
				last(snapshot(110*second, 1, 500, 0, 0, 500, 0))(e)
				e.Spool.Tasks[0].EndNS, e.Spool.Tasks[1].StartNS = 105*second, 105*second
			}, "", ""},
			{"another workload", func(e *Evidence) { last(snapshot(110*second, 1, 0, 0, 0, 1000, 0))(e); e.Workload = "latency" }, "", ""},
			{"one snapshot", func(e *Evidence) { e.Spool.Snapshots = e.Spool.Snapshots[:1] }, "", "does not tell what its CPUs did"},
			{"no spool", noSpoolAtAll, "", noSpool}},
		"peer is the bottleneck": {
			{"all of it", peer(func(s *wire.Spool) { s.Snapshots[1] = snapshot(110*second, 1, 300, 500, 100, 100, 0) }), "its CPUs were 90 % busy", ""},
			{"its tool", peer(func(s *wire.Spool) { s.Tasks[0].SystemUS = 8_000_000 }), "iperf there kept one CPU 90 % busy", ""},
			{"its interrupts", peer(func(s *wire.Spool) {
				s.Snapshots[0].Stat = []byte("cpu 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0\n")
				s.Snapshots[1].Stat = []byte("cpu 100 0 100 950 0 0 850\ncpu0 50 0 50 50 0 0 850\ncpu1 50 0 50 900 0 0 0\n")
			}), "cpu0 there was 95 % busy, most of it with interrupts", ""},
			{"calm", peer(func(*wire.Spool) {}), "", ""},
			{"that emulates the target", func(e *Evidence) {
				e.Workload, e.Emulated = "iperf", true
				e.Peer.Snapshots[1] = snapshot(110*second, 1, 900, 0, 0, 0, 0)
			}, "", ""},
			{"no counters", peer(func(s *wire.Spool) { s.Snapshots = nil }), "", "the peer's kernel does not tell"},
			{"no spool", func(e *Evidence) { e.Workload, e.Peer = "iperf", nil }, "", "no spool of the peer"}},
	}
}

func TestDemand(t *testing.T) {
	task := func(from, to int64) wire.Task { return wire.Task{StartNS: from * second, EndNS: to * second} }
	for _, c := range []struct {
		tasks []wire.Task
		cpus  int
		want  float64
	}{
		{nil, 2, 0},
		{[]wire.Task{task(0, 10)}, 2, 10},
		{[]wire.Task{task(0, 10), task(0, 10), task(0, 4)}, 2, 20},
		{[]wire.Task{task(0, 5), task(5, 9), task(20, 21)}, 2, 10},
		{[]wire.Task{task(3, 3), task(9, 2)}, 2, 0}, // never ended, or a clock that fell
	} {
		if got := demand(c.tasks, c.cpus); got != c.want {
			t.Errorf("%v on %d CPUs: %g s, want %g", c.tasks, c.cpus, got, c.want)
		}
	}
}
