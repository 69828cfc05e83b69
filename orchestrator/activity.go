package orchestrator

import (
	"kernsweep/orchestrator/results"
	"kernsweep/workloads/vmstat"
	"kernsweep/workloads/wire"
)

// activity summarises the counters in a spool, nil when there is nothing to
// summarise.
func activity(spool *wire.Spool) *results.Activity {
	if spool == nil {
		return nil
	}
	rows, warnings := vmstat.Rows(spool.Snapshots)
	s := vmstat.Summarise(rows)
	if s.Samples == 0 {
		return nil
	}
	a := &results.Activity{Samples: s.Samples, Seconds: s.Seconds, Switches: s.Switches, Interrupts: s.Interrupts,
		User: s.User, System: s.System, Idle: s.Idle, Wait: s.Wait, Steal: s.Steal, Missing: s.Missing, Warnings: warnings}
	waiting(a, spool.States)
	return a
}

// waiting fills in the scheduler's own account, from the looks before and after.
func waiting(a *results.Activity, states []wire.State) {
	const schedstat = "/proc/schedstat"
	if n := len(states); n > 1 {
		x, y := states[0], states[n-1]
		before, why := vmstat.ReadSchedStat(x.Files[schedstat])
		after, why2 := vmstat.ReadSchedStat(y.Files[schedstat])
		seconds := float64(y.MonoNS-x.MonoNS) / 1e9
		// It grows, unless CPUs went away.
		if why == "" && why2 == "" && seconds > 0 && before.CPUs == after.CPUs && after.DelayNS >= before.DelayNS && after.Slices >= before.Slices {
			delay := float64(after.DelayNS-before.DelayNS) / 1e6 / seconds
			slices := float64(after.Slices-before.Slices) / seconds
			a.RunDelay, a.Timeslices = &delay, &slices
			return
		}
	}
	a.Missing = append(a.Missing, "run_delay", "timeslices")
}
