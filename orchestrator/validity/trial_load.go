package validity

import (
	"fmt"
	"slices"

	"kernsweep/workloads/vmstat"
	"kernsweep/workloads/wire"
)

// Thresholds of the rules about load, shares in percent.
const (
	mostSteal   = 1.0
	mostOthers  = 2.0
	fewestTicks = 0.1 // seconds of other tasks that the ticks can tell
	boundIdle   = 5.0
	boundLeast  = 1.0 // seconds of work; less is not judged
	peerBusy    = 80.0
	resolutions = 50
)

func loadRules() []trialRule {
	return []trialRule{
		{Rule{Name: "steal", Threshold: "the hypervisor takes at most 1 % of the CPU time",
			Why: "The figures depend on the other guests of the machine."}, stolen},
		{Rule{Name: "busy before the start", Threshold: "no task but the agent wants a CPU just before the start",
			Why: "What ran before may run on."}, busyBefore},
		{Rule{Name: "other tasks running", Threshold: "other tasks take at most 2 % of the CPU time",
			Why: "A scheduler is then measured by how it shares the machine with somebody unknown."}, othersRan},
		{Rule{Name: "too short", Threshold: "a time is at least 50 steps of the clock that it was taken with",
			Why: "A step of the clock would look like a difference of kernels."}, tooShort},
		{Rule{Name: "tasks did not run", Threshold: "less than 5 % of the CPU time that the tasks of crunch could have used is idle",
			Why: "Tasks that wait for something else than a CPU are not bound by it, and not by who shares it out."}, tasksWaited},
		{Rule{Name: "peer is the bottleneck", Threshold: "the peer of a network trial is less than 80 % busy, and so are its tool and its interrupts",
			Why: "The figure would be the peer's, whatever kernel the target runs."}, peerIsBottleneck},
	}
}

func stolen(e *Evidence) answer {
	if e.Spool == nil {
		return unchecked(noSpool)
	}
	rows, _ := vmstat.Rows(e.snapshots())
	s := vmstat.Summarise(rows)
	if s.Samples == 0 || slices.Contains(s.Missing, vmstat.St.String()) {
		return unchecked("the kernel does not tell what the hypervisor took")
	}
	if s.Steal > mostSteal {
		return against(fmt.Sprintf("the hypervisor took %.1f %% of the CPU time (steal): the figures depend on its other guests", s.Steal),
			fmt.Sprintf("mean of %.4g s", s.Seconds))
	}
	return answer{}
}

func busyBefore(e *Evidence) answer {
	snaps := e.snapshots()
	if len(snaps) == 0 {
		return unchecked(noSpool)
	}
	n, ok := vmstat.Runnable(snaps[0])
	switch {
	case !ok:
		return unchecked("the kernel does not tell how many tasks are runnable")
	case n == 1:
		return against("another task wanted a CPU just before the start", "")
	case n > 1:
		return against(fmt.Sprintf("%d other tasks wanted a CPU just before the start", n), "")
	}
	return answer{}
}

// othersRan takes what the task's processes and the agent used from what all did.
// In a network trial the kernel works for the task in threads of its own, so that
// only programs count there.
func othersRan(e *Evidence) answer {
	if e.Spool == nil {
		return unchecked(noSpool)
	}
	all, why := e.spent()
	if why != "" {
		return unchecked(why)
	}
	used, own, why := taskSeconds(e.Spool, e.Workload == "iperf")
	if why != "" {
		return unchecked(why)
	}
	sum := all.User + all.System
	what := "other tasks"
	if e.Workload == "iperf" {
		sum, what = all.User, "other programs"
	}
	others := sum - used - own
	if share := 100 * others / all.Total; share > mostOthers && others > fewestTicks {
		return against(fmt.Sprintf("%s took %.1f %% of the CPU time during the trial", what, share),
			fmt.Sprintf("%.2f s of %.2f s; the task used %.2f s, the agent %.2f s", others, all.Total, used, own))
	}
	return answer{}
}

// spent is the CPU time of the trial, when it adds up.
func (e *Evidence) spent() (t vmstat.CPUTime, why string) {
	snaps := e.snapshots()
	t, ok := vmstat.Spent(snaps)
	if !ok {
		return t, "the kernel does not tell what its CPUs did"
	}
	due := float64(snaps[len(snaps)-1].MonoNS-snaps[0].MonoNS) / 1e9 * float64(vmstat.CPUs(snaps))
	if t.Total < 0.9*due || t.Total > 1.1*due {
		return t, "the ticks of its CPUs do not add up to the time that passed"
	}
	return t, ""
}

// taskSeconds are the CPU seconds of the task's processes and of the agent.
func taskSeconds(s *wire.Spool, userOnly bool) (used, own float64, why string) {
	if len(s.Tasks) == 0 {
		return 0, 0, "the spool has no process of the task"
	}
	for _, t := range s.Tasks {
		if slices.Contains(t.Missing, "utime_us") || slices.Contains(t.Missing, "stime_us") {
			return 0, 0, "the CPU time of the task's processes is not known"
		}
		used += float64(t.UserUS) / 1e6
		if !userOnly {
			used += float64(t.SystemUS) / 1e6
		}
	}
	us, known := number(s.End["cpu_us"])
	if !known {
		return 0, 0, "the CPU time of the agent is not known"
	}
	return used, us / 1e6, ""
}

// tooShort judges the primary figures that are times, by the step they were
// printed with. kernbench says so itself.
func tooShort(e *Evidence) answer {
	if e.Parsed == nil {
		return unchecked("no figure is on file")
	}
	for _, v := range e.Parsed.Values {
		if !v.Primary || v.Missing != "" || !(v.Resolution > 0) || v.Unit != "s" && v.Unit != "ms" && v.Unit != "us" || e.Workload == "kernbench" {
			continue
		}
		if v.Value < resolutions*v.Resolution {
			return against(fmt.Sprintf("%s is too short to be compared: %.4g %s, and its clock has steps of %.3g %s", v.Name, v.Value, v.Unit, v.Resolution, v.Unit),
				fmt.Sprintf("%.3g steps", v.Value/v.Resolution))
		}
	}
	return answer{}
}

// tasksWaited compares the CPU time that was used with what the processes of the
// task could have used: at each moment one CPU each, as far as there are any.
func tasksWaited(e *Evidence) answer {
	if e.Workload != "crunch" {
		return answer{}
	}
	if e.Spool == nil {
		return unchecked(noSpool)
	}
	all, why := e.spent()
	if why != "" {
		return unchecked(why)
	}
	could := demand(e.Spool.Tasks, vmstat.CPUs(e.snapshots()))
	if could < boundLeast {
		return answer{}
	}
	if idle := 100 * (1 - (all.Total-all.Idle)/could); idle >= boundIdle {
		return against(fmt.Sprintf("the work was not bound by the CPU: its tasks left %.0f %% idle of what they could have used", idle),
			fmt.Sprintf("%.2f s busy, %.2f s wanted", all.Total-all.Idle, could))
	}
	return answer{}
}

// demand is the CPU time, in seconds, that tasks could have used on so many CPUs.
func demand(tasks []wire.Task, cpus int) (seconds float64) {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for _, t := range tasks {
		if t.EndNS > t.StartNS {
			edges = append(edges, edge{t.StartNS, 1}, edge{t.EndNS, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.step - b.step
	})
	running, last := 0, int64(0)
	for _, x := range edges {
		seconds += float64(min(running, cpus)) * float64(x.at-last) / 1e9
		running, last = running+x.step, x.at
	}
	return seconds
}

func peerIsBottleneck(e *Evidence) answer {
	if e.Workload != "iperf" || e.Emulated {
		return answer{}
	}
	if e.Peer == nil {
		return unchecked("no spool of the peer is on file")
	}
	all, ok := vmstat.Spent(e.Peer.Snapshots)
	if !ok {
		return unchecked("the peer's kernel does not tell what its CPUs did")
	}
	evidence := fmt.Sprintf("%.0f %% of the peer's CPU time", all.Busy())
	if all.Busy() >= peerBusy {
		return against(fmt.Sprintf("the peer is the bottleneck: its CPUs were %.0f %% busy", all.Busy()), evidence)
	}
	for _, t := range e.Peer.Tasks {
		if s := float64(t.EndNS-t.StartNS) / 1e9; s >= boundLeast && len(t.Missing) == 0 {
			if share := 100 * float64(t.UserUS+t.SystemUS) / 1e6 / s; share >= peerBusy && share <= 100+peerBusy {
				return against(fmt.Sprintf("the peer is the bottleneck: %s there kept one CPU %.0f %% busy", quote(t.Name), share), evidence)
			}
		}
	}
	if cpu, t, ok := vmstat.Busiest(e.Peer.Snapshots); ok && t.Busy() >= peerBusy && 2*t.IRQ >= t.Total-t.Idle {
		return against(fmt.Sprintf("the peer is the bottleneck: %s there was %.0f %% busy, most of it with interrupts", cpu, t.Busy()), evidence)
	}
	return answer{}
}
