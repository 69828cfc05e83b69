package vmstat

import (
	"strconv"
	"strings"
)

// SchedStat is the scheduler's own account, of all CPUs together, since they came up.
type SchedStat struct {
	DelayNS uint64 // tasks that were ready waited so long for a CPU
	Slices  uint64 // times that a task got one
	CPUs    int
}

// nanoseconds is the version of /proc/schedstat since which it counts them;
// before, it counted ticks (kernel Documentation/scheduler/sched-stats.rst).
const nanoseconds = 14

// ReadSchedStat reads /proc/schedstat. why says why there is nothing to read.
func ReadSchedStat(text string) (s SchedStat, why string) {
	if text == "" {
		return s, "this kernel has no /proc/schedstat"
	}
	version := 0
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 2 && f[0] == "version":
			version, _ = strconv.Atoi(f[1])
		case len(f) > 3 && strings.HasPrefix(f[0], "cpu"): // the last three: run, delay, slices
			delay, err := strconv.ParseUint(f[len(f)-2], 10, 64)
			slices, err2 := strconv.ParseUint(f[len(f)-1], 10, 64)
			if err != nil || err2 != nil {
				return SchedStat{}, "/proc/schedstat has a line without numbers"
			}
			s.DelayNS += delay
			s.Slices += slices
			s.CPUs++
		}
	}
	switch {
	case version < nanoseconds:
		return SchedStat{}, "/proc/schedstat is of a version without nanoseconds"
	case s.CPUs == 0:
		return SchedStat{}, "/proc/schedstat names no CPU"
	}
	return s, ""
}
