package vmstat

import (
	"fmt"

	"kernsweep/workloads/wire"
)

// agentThreads of the agent may be running when it takes its first sample: the
// sampler, and the Go runtime's monitor that its waking wakes.
const agentThreads = 2

// Doubts are soft findings about a trial, a sentence each: steal, other work
// before the start, and too few context switches for scheduling to matter.
func Doubts(snaps []wire.Snapshot) (w []string) {
	rows, _ := Rows(snaps)
	if len(rows) == 0 {
		return nil
	}
	if n, ok := parse(snaps[0]).stat["procs_running"]; ok && n > agentThreads {
		w = append(w, fmt.Sprintf("%d other tasks wanted a CPU just before the start", n-agentThreads))
	}
	if v, ok := mean(rows, St); ok && v > 1 {
		w = append(w, fmt.Sprintf("the hypervisor took %.1f %% of the CPU time (steal): the figures depend on its other guests", v))
	}
	cs, ok := mean(rows, Cs)
	idle, ok2 := mean(rows, Id)
	if wait, has := mean(rows, Wa); has {
		idle += wait
	}
	busy := float64(CPUs(snaps)) * (100 - idle) / 100
	if ok && ok2 && busy > 0.5 && cs < 10*busy {
		w = append(w, fmt.Sprintf("only %.1f context switches a second on %.1f busy CPU(s): a difference cannot be due to scheduling decisions", cs, busy))
	}
	return w
}
