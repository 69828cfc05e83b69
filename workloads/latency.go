package workloads

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Latency wakes a process blocked in read(2) on a pipe, to an absolute random
// schedule, and measures how long after the wakeup it runs, alone or while a
// load runs. The waker's own lateness is a series of its own. With a duration
// the load is started again whenever it ends; without, the trial lasts as long
// as the load does, and its runtime counts.
type Latency struct {
	Schedule  string        `hcl:"schedule,optional" doc:"\"fast\" (default): a wakeup every 10 to 20 ms; \"historic\": every 100 ms to 2 s, which takes 18 minutes for a p99"`
	PeriodMin time.Duration `hcl:"period_min,optional" doc:"shortest time between wakeups, instead of the schedule's"`
	PeriodMax time.Duration `hcl:"period_max,optional" doc:"longest time between wakeups, instead of the schedule's"`
	Duration  time.Duration `hcl:"duration,optional" doc:"length of the measurement; without it the load decides (default without a load: 30s)"`
	Load      int           `hcl:"load,optional" doc:"processes of the load as a multiple of the target's CPUs; 0 (default): idle"`
	Command   []string      `hcl:"command,optional" doc:"the load: started once when an argument holds {jobs}, which becomes the number of processes, else that many times (default: built-in float programs)"`
	Work      int           `hcl:"work,optional" doc:"work units of each built-in program (default 10000, about 10 s on a 1 GHz CPU). The target's scale multiplies it"`
	Place     string        `hcl:"place,optional" doc:"CPUs of the two ends: \"free\" (default), \"same\" or \"other\""`
}

const (
	wakeups    = "wakeup" // the agent's names
	loadTask   = "load"
	idleLength = 30 * time.Second // of a measurement without a load
)

// Check refuses parameters that make no sense.
func (l *Latency) Check() error {
	low, high := l.periods()
	switch {
	case l.Schedule != "" && l.Schedule != "fast" && l.Schedule != "historic":
		return fmt.Errorf("schedule = %q: must be fast or historic", l.Schedule)
	case low <= 0 || high < low:
		return fmt.Errorf("periods from %v to %v: must be above 0, period_max not below period_min", low, high)
	case high > time.Minute:
		return fmt.Errorf("period_max = %v: more than a minute between wakeups gives too few of them", high)
	case l.Duration < 0:
		return fmt.Errorf("duration = %v: must not be negative", l.Duration)
	case l.Load < 0:
		return fmt.Errorf("load = %d: must be 0 (idle) or a multiple of the CPUs", l.Load)
	case l.Load == 0 && (len(l.Command) > 0 || l.Work != 0):
		return errors.New("a command or work needs a load of at least 1")
	case l.Work < 0 || l.Work > 0 && len(l.Command) > 0:
		return errors.New("work belongs to the built-in load: give either work or command")
	case len(l.Command) > 0 && l.Command[0] == "":
		return errors.New("command begins with an empty word")
	case l.Place != "" && l.Place != "free" && l.Place != "same" && l.Place != "other":
		return fmt.Errorf("place = %q: must be free, same or other", l.Place)
	}
	return nil
}

// periods are the shortest and the longest time between wakeups.
func (l *Latency) periods() (low, high time.Duration) {
	low, high = 10*time.Millisecond, 20*time.Millisecond
	if l.Schedule == "historic" {
		low, high = 100*time.Millisecond, 2*time.Second
	}
	if l.PeriodMin != 0 {
		low = l.PeriodMin
	}
	if l.PeriodMax != 0 {
		high = l.PeriodMax
	}
	return low, high
}

func (l *Latency) untilLoad() bool { return l.Load > 0 && l.Duration == 0 }

func (l *Latency) duration() time.Duration {
	if l.Duration == 0 {
		return idleLength
	}
	return l.Duration
}

func (l *Latency) units(scale float64) int {
	w := float64(l.Work)
	if w == 0 {
		w = 10000
	}
	if scale > 0 {
		w *= scale
	}
	return max(1, int(math.Round(w)))
}

// Needs says that only the Go agent has the probe.
func (l *Latency) Needs() Needs { return Needs{GoAgent: "the wakeup probe is part of the Go agent"} }

// Estimate is the duration; where the load decides, its length is a guess.
func (l *Latency) Estimate() time.Duration {
	switch {
	case !l.untilLoad():
		return l.duration()
	case len(l.Command) > 0:
		return 5 * time.Minute
	default:
		return time.Duration(l.units(1)*l.Load) * time.Millisecond
	}
}

// Metrics are the wakeup latency from the write on, the same from the intended
// time on, the waker's lateness, and the load's runtime.
func (l *Latency) Metrics() []Metric {
	us := func(name string, better Direction) Metric { return Metric{Name: name, Unit: "us", Better: better} }
	var ms []Metric
	for _, q := range quantiles() {
		m := us(q.name, LowerIsBetter)
		m.Primary = q.name == "p99"
		ms = append(ms, m)
	}
	ms = append(ms, us("max", LowerIsBetter), us("mean", LowerIsBetter), us("sd", LowerIsBetter),
		us("intended.p99", LowerIsBetter), us("intended.max", LowerIsBetter),
		us("late.p50", Informative), us("late.p99", Informative), us("late.max", Informative),
		Metric{Name: "samples", Unit: "count", Better: Informative},
		Metric{Name: "skipped_periods", Unit: "count", Better: Informative})
	if l.untilLoad() {
		return append(ms, Metric{Name: "runtime", Unit: "s", Better: LowerIsBetter})
	}
	if l.Load > 0 { // how often it fits is chance: not to be compared
		return append(ms, Metric{Name: "runtime", Unit: "s", Better: Informative})
	}
	return ms
}

// Run runs the probe once.
func (l *Latency) Run(ctx context.Context, env *Env) error {
	if env.Target.Agent.Kind() != "go" {
		return &UnavailableError{Reason: l.Needs().GoAgent}
	}
	if l.Place == "other" && env.CPUs < 2 {
		return &UnavailableError{Reason: "place = \"other\" needs a second CPU"}
	}
	low, high := l.periods()
	argv := []string{"latency", "-period-min", low.String(), "-period-max", high.String()}
	if l.untilLoad() {
		argv = append(argv, "-until-load")
	} else {
		argv = append(argv, "-duration", l.duration().String())
	}
	if l.Place != "" {
		argv = append(argv, "-place", l.Place)
	}
	argv = append(argv, "-load", strconv.Itoa(l.Load*max(1, env.CPUs)))
	if len(l.Command) == 0 {
		argv = append(argv, "-work", strconv.Itoa(l.units(env.Scale)))
	}
	argv = append(argv, "--")
	return env.Target.Agent.Run(ctx, Task{Argv: append(argv, l.Command...),
		Deadline: env.Deadline, Sample: env.Sample, Dir: env.Dir, Ended: env.Ended})
}
