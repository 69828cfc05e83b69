package validity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// makespans looks at each trial, since medians of tasks may be of several.
func makespans(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		if c.kind != kindCrunch {
			continue
		}
		tasks, cpus, n, evidence := tasksOf(c.names), c.side.cpus(), 0, ""
		for _, a := range c.trials {
			took, bound := impossible(a, tasks, cpus)
			if bound == 0 {
				continue
			}
			if n++; n == 1 {
				evidence = fmt.Sprintf("all ended within %.5g s, their computing needs at least %.5g s on %s", took, bound, plural.Of(cpus, "CPU"))
				if cpus == 0 {
					evidence = fmt.Sprintf("all ended within %.5g s, one of them computed for %.5g s", took, bound)
				}
			}
		}
		if n > 0 {
			f := c.about("the tasks ended sooner than their computing allows: a clock or the accounting is suspect")
			f.Evidence, f.Trials = evidence, n
			out = append(out, f)
		}
	}
	return out
}

// impossible is the makespan of a trial and the least that it can be; the bound
// is 0 when it was kept, or nothing is known.
func impossible(a *results.Attempt, tasks []string, cpus int) (took, bound float64) {
	span, why := a.Value("makespan")
	took = span.Value
	var sum, longest, wall float64
	for _, t := range tasks {
		user, why := a.Value(t + ".user")
		if why != "" || !stats.Num(user.Value).OK() {
			return 0, 0
		}
		if w, why := a.Value(t + ".wall"); why == "" && stats.Num(w.Value).OK() {
			wall = max(wall, w.Value)
		}
		sum, longest = sum+user.Value, max(longest, user.Value)
	}
	if why != "" {
		took = wall // of tasks that began together
	}
	bound = longest
	if cpus > 0 && why == "" {
		bound = max(longest, sum/float64(cpus))
	}
	// Half a tick of 10 ms may be charged too much at each of a task's two ends.
	if !(took > 0) || took >= bound*(1-slack)-0.01*float64(len(tasks)) {
		return took, 0
	}
	return took, bound
}

// keptCPU looks, trial by trial, for one task that kept a CPU while others shared
// the rest.
func keptCPU(v *view) []results.Found {
	var out []results.Found
	for i := range v.cells {
		c := &v.cells[i]
		if c.kind != kindCrunch || c.mode() != parallel {
			continue
		}
		tasks, n, evidence := tasksOf(c.names), 0, ""
		for _, a := range c.trials {
			shares, fair, cpus := sharesOf(a, tasks, c.side.cpus())
			if len(shares) <= cpus {
				continue
			}
			most, least := slices.Max(shares), slices.Min(shares)
			lucky := slices.Index(shares, most)
			if most <= ownCPU || least >= unfair || most <= fair[lucky]+aboveFair {
				continue
			}
			if n++; n > 1 {
				continue
			}
			var words []string
			for k, t := range tasks {
				words = append(words, fmt.Sprintf("%s %.1f %%", t, 100*shares[k]))
			}
			evidence = fmt.Sprintf("%s of a CPU each, on %s; fair would have been %.1f %% for %s", strings.Join(words, ", "), plural.Of(cpus, "CPU"), 100*fair[lucky], tasks[lucky])
		}
		if n == 0 {
			continue
		}
		f := c.about("one task kept a CPU to itself while the others shared: single times measure who was lucky")
		f.Evidence, f.Trials = fmt.Sprintf("in %d of %d trials, first: %s", n, len(c.trials), evidence), n
		out = append(out, f)
	}
	return out
}

// sharesOf are user / wall of each task of a trial, and what each would have had
// if all CPUs were shared fairly all the time; nil where one is not known. CPUs
// that are not on file are counted by the work that was done on them.
func sharesOf(a *results.Attempt, tasks []string, cpus int) (shares, fair []float64, n int) {
	var users []float64
	var sum, longest float64
	for _, t := range tasks {
		u, whyU := a.Value(t + ".user")
		w, whyW := a.Value(t + ".wall")
		if whyU != "" || whyW != "" || !stats.Num(u.Value/w.Value).OK() || !(u.Value > 0) {
			return nil, nil, 0
		}
		users, shares = append(users, u.Value), append(shares, u.Value/w.Value)
		sum, longest = sum+u.Value, max(longest, w.Value)
	}
	if cpus == 0 {
		cpus = max(1, int(math.Ceil(sum/longest-0.05)))
	}
	return shares, fairShares(users, cpus), cpus
}

// fairShares of tasks that begin together and need so many seconds of computing:
// at any time, those not yet done share the CPUs evenly.
func fairShares(users []float64, cpus int) []float64 {
	order := make([]int, len(users))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		if users[a] < users[b] {
			return -1
		}
		return 1
	})
	fair := make([]float64, len(users))
	var at, done float64 // time, and what each task has had by then
	for n, i := range order {
		rate := min(1, float64(cpus)/float64(len(order)-n))
		at += (users[i] - done) / rate
		done = users[i]
		fair[i] = users[i] / at
	}
	return fair
}

// parallelSums is about imported tables that sum up walls of parallel tasks.
func parallelSums(v *view) []results.Found {
	var out []results.Found
	said := map[[3]string]bool{}
	for i := range v.cells {
		c := &v.cells[i]
		k := [3]string{c.Target, c.Workload, c.Scenario}
		x, ok := c.value("total.wall")
		if !ok || said[k] || c.mode() != parallel {
			continue
		}
		said[k] = true
		f := c.about("the total wall time sums up tasks that ran at the same time: it is no duration")
		f.Kernel, f.Metric = "", "total.wall"
		f.Evidence = fmt.Sprintf("%.6g s with %s", x, c.Kernel)
		out = append(out, f)
	}
	return out
}
