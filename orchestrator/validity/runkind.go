package validity

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// kind of a workload, told by what it measures: imported logs have no other word.
type kind int

const (
	kindOther kind = iota
	kindCrunch
	kindKernbench
	kindIperf
)

func kindOf(names []string) kind {
	has := func(n string) bool { return slices.Contains(names, n) }
	switch {
	case has("throughput"):
		return kindIperf
	case has("elapsed") && has("user"):
		return kindKernbench
	case len(tasksOf(names)) > 0:
		return kindCrunch
	}
	return kindOther
}

// tasksOf are the tasks that have both user and wall seconds: "LTMM.user".
func tasksOf(names []string) []string {
	var tasks []string
	for _, n := range names {
		t, ok := strings.CutSuffix(n, ".user")
		if ok && t != "total" && slices.Contains(names, t+".wall") {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// runnable is how many tasks of the workload want a CPU at the same time; 0: not
// known.
func (c *cellView) runnable() int {
	switch c.kind {
	case kindCrunch:
		switch c.mode() {
		case sequential:
			return 1
		case parallel:
			return len(tasksOf(c.names))
		}
	case kindKernbench:
		return c.jobs()
	}
	return 0
}

// mode is how a cell's tasks ran.
type mode int

const (
	unclear mode = iota
	sequential
	parallel
)

var firstTasks = regexp.MustCompile(`^(?:-?j|par|parallel|p)?[-_=]?(\d+)`)

// mode tells it by the walls: those of tasks one after another sum up to the
// makespan. Without a makespan the scenario's name has to do: "j1", "j3big".
func (c *cellView) mode() mode {
	tasks := tasksOf(c.names)
	if len(tasks) < 2 {
		return unclear
	}
	sum, ok := c.sum(tasks, ".wall")
	if makespan, known := c.value("makespan"); ok && known && sum > 0 {
		if makespan > 0.97*sum {
			return sequential
		}
		return parallel
	}
	switch m := firstTasks.FindStringSubmatch(c.Scenario); {
	case m == nil:
		return unclear
	case m[1] == "1":
		return sequential
	default:
		return parallel
	}
}

// sum of a quantity over tasks, by the medians; false when one has none.
func (c *cellView) sum(tasks []string, quantity string) (float64, bool) {
	total := 0.0
	for _, t := range tasks {
		x, ok := c.value(t + quantity)
		if !ok {
			return 0, false
		}
		total += x
	}
	return total, len(tasks) > 0
}

// level of kernbench, by the scenario's name.
func (c *cellView) level() string {
	for _, l := range []string{"single", "half", "optimal", "maximal"} {
		if strings.Contains(strings.ToLower(c.Scenario), l) {
			return l
		}
	}
	return ""
}

// jobs of a build; 0: not known.
func (c *cellView) jobs() int {
	cpus := c.side.cpus()
	switch c.level() {
	case "single":
		return 1
	case "half":
		return cpus / 2
	case "optimal", "maximal":
		return cpus
	}
	if m := firstTasks.FindStringSubmatch(c.Scenario); m != nil {
		n, err := strconv.Atoi(m[1])
		if err == nil {
			return n
		}
	}
	return 0
}
