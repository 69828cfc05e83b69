package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

const (
	mostMoved   = 4
	leastMoved  = 0.1 // a smaller move is told only when the boots of the kernels do not overlap
	leastClear  = 0.02
	clearBoots  = 4   // of each kernel, below which boots that do not overlap are no surprise
	shareOfAll  = 100 // percent
	unitPerS    = "1/s"
	unitPercent = "%"
)

// counter is a figure of an attempt that says what the machine did.
type counter struct {
	name, unit string
	of         func(*results.Attempt) (float64, bool)
}

// counters are the machine's own, then those of the workload.
func counters(metrics []workloads.Metric, not string) []counter {
	activity := func(name, unit, column string, of func(*results.Activity) *float64) counter {
		return counter{name, unit, func(a *results.Attempt) (float64, bool) {
			s := a.Summary
			if s == nil || s.Samples == 0 || slices.Contains(s.Missing, column) {
				return 0, false
			}
			v := of(s)
			if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
				return 0, false
			}
			return *v, true
		}}
	}
	list := []counter{
		activity("context switches", unitPerS, "cs", func(a *results.Activity) *float64 { return &a.Switches }),
		activity("interrupts", unitPerS, "in", func(a *results.Activity) *float64 { return &a.Interrupts }),
		activity("user time share", unitPercent, "us", func(a *results.Activity) *float64 { return &a.User }),
		activity("system time share", unitPercent, "sy", func(a *results.Activity) *float64 { return &a.System }),
		activity("idle share", unitPercent, "id", func(a *results.Activity) *float64 { return &a.Idle }),
		activity("waiting for I/O share", unitPercent, "wa", func(a *results.Activity) *float64 { return &a.Wait }),
		activity("steal share", unitPercent, "st", func(a *results.Activity) *float64 { return &a.Steal }),
		activity("time tasks waited for a CPU", "ms/s", "run_delay", func(a *results.Activity) *float64 { return a.RunDelay }),
		activity("scheduler timeslices", unitPerS, "timeslices", func(a *results.Activity) *float64 { return a.Timeslices }),
	}
	for _, m := range metrics {
		countable := m.Unit == "count" || m.Unit == unitPerS || m.Unit == unitPercent && m.Better == workloads.Informative
		printed := strings.HasPrefix(m.Name, "printed.") // an import keeps what a log got wrong
		if m.Primary || m.Name == not || !countable || printed {
			continue
		}
		list = append(list, counter{m.Name, m.Unit, func(a *results.Attempt) (float64, bool) {
			v, why := a.Value(m.Name)
			return v.Value, why == "" && !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0)
		}})
	}
	return list
}

// moved are the counters that differ most between two cells, strongest first.
// That they went with the difference does not say that they made it.
func (j *judging) moved(cells [2]results.Cell, m workloads.Metric) []Moved {
	type scored struct {
		Moved
		score float64
	}
	boots := [2][]results.BootTrials{j.state.Model.ByBoot(cells[0]), j.state.Model.ByBoot(cells[1])}
	if len(boots[0]) == 0 || len(boots[1]) == 0 {
		return nil
	}
	var all []scored
	for _, c := range counters(metricsOf(j.state, cells[1], cells[0]), m.Name) {
		a, b := c.over(boots[0]), c.over(boots[1])
		if len(a.all) == 0 || len(b.all) == 0 {
			continue
		}
		x, y := stats.Quantile(a.all, 0.5), stats.Quantile(b.all, 0.5)
		clear := min(len(a.boots), len(b.boots)) >= clearBoots &&
			(slices.Min(a.boots) > slices.Max(b.boots) || slices.Max(a.boots) < slices.Min(b.boots))
		score := strength(x, y, c.unit)
		if score < leastClear || score < leastMoved && !clear {
			continue
		}
		mv := Moved{Counter: c.name, Unit: c.unit, Base: stats.Num(x), Value: stats.Num(y), Clear: clear}
		mv.Sentence = mv.say(cells, min(len(a.boots), len(b.boots)) >= clearBoots)
		if clear {
			score += 100 // before those that overlap
		}
		all = append(all, scored{mv, score})
	}
	slices.SortStableFunc(all, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	var out []Moved
	for _, s := range all[:min(len(all), mostMoved)] {
		out = append(out, s.Moved)
	}
	return out
}

// spread is a counter over the trials of a cell.
type spread struct{ all, boots []float64 }

func (c *counter) over(boots []results.BootTrials) spread {
	var s spread
	for _, b := range boots {
		var in []float64
		for _, a := range b.Trials {
			if v, ok := c.of(a); ok {
				in = append(in, v)
			}
		}
		if len(in) > 0 {
			s.all = append(s.all, in...)
			s.boots = append(s.boots, stats.Quantile(in, 0.5))
		}
	}
	return s
}

// strength of a move: of shares the difference, of others the logarithm of the
// ratio, at most 10.
func strength(x, y float64, unit string) float64 {
	switch {
	case unit == unitPercent:
		return math.Abs(y-x) / shareOfAll
	case x == y:
		return 0
	case x <= 0 || y <= 0:
		return 10
	}
	return math.Min(10, math.Abs(math.Log(y/x)))
}

func (m *Moved) say(cells [2]results.Cell, boots bool) string {
	unit := m.Unit
	switch unit {
	case unitPerS:
		unit = "/s"
	case "", "count":
		unit = ""
	default:
		unit = " " + unit
	}
	s := fmt.Sprintf("%s went with it: %s%s with %s, %s%s with %s", m.Counter,
		number(m.Base.Value), unit, cells[0].Kernel, number(m.Value.Value), unit, cells[1].Kernel)
	switch {
	case m.Clear:
		return s + " (their boots do not overlap)"
	case boots:
		return s + " (their boots overlap)"
	}
	return s + " (too few boots to tell)"
}
