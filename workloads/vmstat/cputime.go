package vmstat

import (
	"slices"
	"strings"

	"kernsweep/workloads/wire"
)

// CPUTime is what the CPUs of a machine did between two moments, in seconds of
// all of them together, by the ticks that the kernel counted.
type CPUTime struct {
	User   float64 // user and nice, guests in them
	System float64 // without interrupts
	IRQ    float64 // interrupts, soft ones too
	Idle   float64 // with waiting for a device
	Total  float64
}

// Busy is the share of the time that was not idle, in percent.
func (t CPUTime) Busy() float64 { return 100 * (t.Total - t.Idle) / t.Total }

// Spent is what the CPUs did from the first snapshot to the last. ok is false
// when no tick passed, or the kernel did not tell, or its CPUs changed.
func Spent(snaps []wire.Snapshot) (t CPUTime, ok bool) {
	if len(snaps) < 2 {
		return t, false
	}
	a, b := parse(snaps[0]), parse(snaps[len(snaps)-1])
	if !slices.Equal(a.cpus, b.cpus) {
		return t, false
	}
	return between(a.ticks, b.ticks)
}

// Busiest is the CPU that was least idle from the first snapshot to the last.
func Busiest(snaps []wire.Snapshot) (cpu string, t CPUTime, ok bool) {
	for name, one := range EachCPU(snaps) {
		if !ok || one.Busy() > t.Busy() || one.Busy() == t.Busy() && name < cpu {
			cpu, t, ok = name, one, true
		}
	}
	return cpu, t, ok
}

// EachCPU is what each CPU ("cpu0") did from the first snapshot to the last; those
// that the kernel does not tell of are not there.
func EachCPU(snaps []wire.Snapshot) map[string]CPUTime {
	all := map[string]CPUTime{}
	if len(snaps) < 2 {
		return all
	}
	b := perCPU(snaps[len(snaps)-1])
	for name, was := range perCPU(snaps[0]) {
		if t, ok := between(was, b[name]); ok {
			all[name] = t
		}
	}
	return all
}

// perCPU are the ticks of each CPU.
func perCPU(s wire.Snapshot) map[string][]uint64 {
	all := map[string][]uint64{}
	for _, line := range strings.Split(string(s.Stat), "\n") {
		if f := strings.Fields(line); len(f) > 1 && f[0] != "cpu" && strings.HasPrefix(f[0], "cpu") {
			all[f[0]] = numbers(f[1:], tickFields)
		}
	}
	return all
}

func between(a, b []uint64) (t CPUTime, ok bool) {
	n := min(len(a), len(b), guest)
	if n < 4 {
		return t, false
	}
	var d [tickFields]float64
	for i := range n {
		d[i] = max(0, float64(int64(b[i]-a[i]))) / userHZ
		t.Total += d[i]
	}
	t.User, t.System, t.IRQ, t.Idle = d[user]+d[nice], d[system], d[irq]+d[softirq], d[idle]+d[iowait]
	return t, t.Total > 0
}

// Runnable is how many other tasks wanted a CPU when the snapshot was taken, the
// agent's own threads left out; ok is false when the kernel did not say.
func Runnable(s wire.Snapshot) (n int, ok bool) {
	r, ok := parse(s).stat["procs_running"]
	return max(0, int(r)-agentThreads), ok && r < 1<<30
}

// agentThreads of the agent may be running when it takes its first sample: the
// sampler, and the Go runtime's monitor that its waking wakes.
const agentThreads = 2
