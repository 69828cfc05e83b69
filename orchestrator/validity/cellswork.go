package validity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// Thresholds of the rules about fixed work.
const (
	sameWork  = 0.05 // by which user time of the same work may differ, as a share
	ownCPU    = 0.95 // share of a CPU that a task has all to itself
	unfair    = 0.85 // share that another task is left with then
	aboveFair = 0.05 // more than its fair share
	slack     = 0.01 // of a makespan: accounting by clock ticks
)

func workRules() []runRule {
	return []runRule{
		{Rule{Name: "same work, different user time", Hard: true, Threshold: "user time of the same tasks, run one after another and at once, differs by at most 5 %",
			Why: "The same work takes the same computing; where it does not, the clock, the frequency or the accounting was another."},
			func(v *view) []results.Found { return userTimes(v, true) }},
		{Rule{Name: "same work, shared caches", Threshold: "user time of builds, and of tasks that share caches, memory or cores, differs by at most 5 %",
			Why: "Tasks that wait for memory or a core that they share compute for longer: the figure holds that, too."},
			func(v *view) []results.Found { return userTimes(v, false) }},
		{Rule{Name: "impossible makespan", Threshold: "at least the longest task, and at least all user time divided by the CPUs",
			Why: "Nothing ends sooner than its computing allows: one of the clocks is wrong."}, makespans},
		{Rule{Name: "CPU kept", Threshold: "no task has 95 % of a CPU while another one, of more tasks than CPUs, is left with less than 85 %",
			Why: "One task had a CPU to itself: its time and those of the others measure who was lucky."}, keptCPU},
		{Rule{Name: "sum of parallel times", Threshold: "walls are summed up only of tasks that ran one after another",
			Why: "Times that overlap do not add up to a duration."}, parallelSums},
	}
}

// userTimes compares, inside each kernel, the scenarios of a workload that do the
// same work one after another and at once. What has an innocent cause is soft.
func userTimes(v *view, hard bool) []results.Found {
	var out []results.Found
	said := map[[3]string]bool{}
	for i := range v.cells {
		c := &v.cells[i]
		k := [3]string{c.Target, c.Kernel, c.Workload}
		if c.runnable() != 1 || said[k] {
			continue
		}
		said[k] = true
		switch {
		case c.kind != kindKernbench:
			out = append(out, v.taskTimes(c, hard)...)
		case !hard:
			out = append(out, v.buildTimes(c)...)
		}
	}
	return out
}

// taskTimes compares sequential tasks with each scenario that ran them at once.
func (v *view) taskTimes(c *cellView, hard bool) []results.Found {
	var evidence []string
	text := ""
	for j := range v.cells {
		o := &v.cells[j]
		if o.Target != c.Target || o.Kernel != c.Kernel || o.Workload != c.Workload || o.mode() != parallel {
			continue
		}
		ratio, excuse := sameTasks(c, o)
		if ratio == 0 || math.Abs(ratio-1) <= sameWork || hard != (excuse == "") {
			continue
		}
		switch {
		case !hard:
			text = "the same work took more user time at once than one after another: " + excuse
		case text == "" && ratio > 1:
			text = "the same work took more user time one after another than at once: accounting or frequency is suspect"
		case text == "":
			text = "the same work took less user time one after another than at once: accounting or frequency is suspect"
		}
		evidence = append(evidence, fmt.Sprintf("user time of %s / %s = %.4f", c.Scenario, o.Scenario, ratio))
	}
	if evidence == nil {
		return nil
	}
	f := c.side.about(text)
	f.Workload, f.Evidence = c.Workload, strings.Join(evidence, ", ")
	return []results.Found{f}
}

// sameTasks is the user time of sequential tasks over that of the same tasks at
// once, 0 where they cannot be compared. excuse says what explains a ratio below
// 1: tasks that run at once share caches, memory, and maybe cores.
func sameTasks(seq, par *cellView) (ratio float64, excuse string) {
	tasks := tasksOf(seq.names)
	if !slices.Equal(tasks, tasksOf(par.names)) || !sameChecksums(seq, par) {
		return 0, ""
	}
	a, b := seq.userTime(tasks), par.userTime(tasks)
	if !(a > 0) || !(b > 0) {
		return 0, ""
	}
	if ratio = a / b; ratio >= 1-sameWork {
		return ratio, ""
	}
	for _, boot := range par.side.boots {
		if boot.Result.Record.CPUFreq["smt"] == "1" {
			return ratio, "two threads of a core slow each other down (SMT is on)"
		}
	}
	// What stays in the first-level cache is slowed down by no neighbour.
	x, okX := seq.value("LTMM.user")
	y, okY := par.value("LTMM.user")
	if okX && okY && math.Abs(x/y-1) <= sameWork {
		return ratio, "the task that stays in its CPU's own cache did not, so the others may have waited for caches and memory that they share"
	}
	return ratio, ""
}

// userTime is the median over trials of their tasks' user time together, 0 when
// no trial has it of all. Old tables print the total of the first trial.
func (c *cellView) userTime(tasks []string) float64 {
	var totals []float64
	for _, a := range c.trials {
		total := 0.0
		for _, t := range tasks {
			x, why := a.Value(t + ".user")
			if why != "" {
				x.Value = math.NaN()
			}
			total += x.Value
		}
		if stats.Num(total).OK() {
			totals = append(totals, total)
		}
	}
	switch {
	case len(totals) == 0:
		return 0
	case c.imported:
		return totals[0]
	}
	return stats.Quantile(totals, 0.5)
}

// sameChecksums is false when the tasks' results prove that the work was not the
// same.
func sameChecksums(a, b *cellView) bool {
	sums := func(c *cellView) map[string]string {
		m := map[string]string{}
		for _, t := range c.trials {
			if t.Parsed == nil {
				continue
			}
			for _, n := range t.Parsed.Notes {
				if task, sum, ok := strings.Cut(strings.TrimPrefix(n, "checksum of "), ": "); ok && strings.HasPrefix(n, "checksum of ") {
					m[task] = sum
				}
			}
		}
		return m
	}
	other := sums(b)
	for task, sum := range sums(a) {
		if o, ok := other[task]; ok && o != sum {
			return false
		}
	}
	return true
}

// buildTimes compares a build of one job with those of several. Caches differ, so
// it is soft.
func (v *view) buildTimes(c *cellView) []results.Found {
	one, ok := c.value("user")
	if !ok || !(one > 0) {
		return nil
	}
	var evidence []string
	for j := range v.cells {
		o := &v.cells[j]
		if o.Target != c.Target || o.Kernel != c.Kernel || o.Workload != c.Workload || o == c {
			continue
		}
		if x, ok := o.value("user"); ok && x > 0 && math.Abs(one/x-1) > sameWork {
			evidence = append(evidence, fmt.Sprintf("user time of %s / %s = %.4f", c.Scenario, o.Scenario, one/x))
		}
	}
	if evidence == nil {
		return nil
	}
	f := c.side.about("the same build took another amount of user time with more jobs: caches and cores that are shared, or the accounting, are in the figures")
	f.Workload, f.Evidence = c.Workload, strings.Join(evidence, ", ")
	return []results.Found{f}
}
