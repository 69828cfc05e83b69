package importer

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"kernsweep/workloads"
)

// derive adds what follows from the figures of kinds that are known: the sums
// and the makespan of crunch, doubts about latencies.
func (m *Import) derive() {
	tasks := map[string][]string{} // by workload
	for key := range m.findAt {
		if kindOf(key.workload) != "crunch" {
			continue
		}
		for _, what := range []string{".user", ".wall"} {
			if task, ok := strings.CutSuffix(key.name, what); ok && !slices.Contains(tasks[key.workload], task) {
				tasks[key.workload] = append(tasks[key.workload], task)
			}
		}
	}
	for _, list := range tasks {
		slices.Sort(list)
	}
	for i := range m.trials {
		t := &m.trials[i]
		switch w := m.cells[t.cell].Workload; kindOf(w) {
		case "crunch":
			m.crunch(t, tasks[w])
		case "latency":
			m.latency(t)
		}
	}
	m.lengths()
}

// lengths looks for runs of iperf that were much shorter or longer than the
// others of their cell: they were cut off, or asked for something else.
func (m *Import) lengths() {
	of := map[int32][]float64{}
	for i := range m.trials {
		if v, ok := m.value(&m.trials[i], "seconds"); ok && m.o.Format == "iperf" {
			of[m.trials[i].cell] = append(of[m.trials[i].cell], v.v)
		}
	}
	for _, list := range of {
		slices.Sort(list)
	}
	for i := range m.trials {
		list := of[m.trials[i].cell]
		if len(list) == 0 {
			continue
		}
		usual := list[len(list)/2]
		if v, ok := m.value(&m.trials[i], "seconds"); ok && (v.v < 0.9*usual || v.v > 1.1*usual) {
			m.warn(&m.trials[i], fmt.Sprintf("this run lasted %.4g s, and the others of the cell %.4g s: was it cut off?", v.v, usual))
		}
	}
}

func kindOf(workload string) string {
	kind, _, _ := strings.Cut(workload, ".")
	return kind
}

var atOnceName = regexp.MustCompile(`(?i)^(?:j(\d+)|(seq|serial|single)|(par|concurrent))`)

// atOnce says whether the tasks of a scenario ran at once, by its name: j1 one
// after another, j3 three at once. known is false when the name tells nothing.
func atOnce(scenario string) (together, known bool) {
	g := atOnceName.FindStringSubmatch(scenario)
	if g == nil {
		return false, false
	}
	return g[1] != "" && g[1] != "1" && g[1] != "0" || g[3] != "", true
}

// crunch adds shares, totals and the makespan of a trial, with the names of
// workloads.Crunch.
func (m *Import) crunch(t *trial, tasks []string) {
	w := m.cells[t.cell].Workload
	together, known := atOnce(m.cells[t.cell].Scenario)
	own := slices.Clone(m.of(t))
	var user, wall sum
	for _, task := range tasks {
		u, okU := m.value(t, task+".user")
		x, okW := m.value(t, task+".wall")
		user.add(task, u, okU)
		wall.add(task, x, okW)
		if okU && okW && x.v > 0 {
			own = append(own, m.derived(w, task+".share", workloads.Metric{Unit: "%", Better: workloads.Informative}, "", 100*u.v/x.v, 0))
		}
	}
	seconds := workloads.Metric{Unit: "s", Better: workloads.LowerIsBetter}
	own = append(own, m.derived(w, "total.user", seconds, user.lacks, user.v, user.res))
	info := seconds
	if info.Better = workloads.Informative; known && !together {
		info.Better = workloads.LowerIsBetter
	}
	own = append(own, m.derived(w, "total.wall", info, wall.lacks, wall.v, wall.res))
	switch span := wall.v; {
	case !known:
		own = append(own, m.derived(w, "makespan", seconds, "whether the tasks ran at once is not known", 0, 0))
	default:
		if together {
			span = wall.most
		}
		own = append(own, m.derived(w, "makespan", seconds, wall.lacks, span, wall.res))
	}
	t.from = int32(len(m.vals))
	m.vals = append(m.vals, own...)
	t.to = int32(len(m.vals))
}

// sum is of the tasks of one trial.
type sum struct {
	v, most, res float64
	lacks        string
}

func (s *sum) add(task string, v val, ok bool) {
	if !ok {
		if s.lacks == "" {
			s.lacks = "this repeat has no figure of " + task
		}
		return
	}
	s.v, s.most, s.res = s.v+v.v, math.Max(s.most, v.v), math.Max(s.res, v.res)
}

// derived is a value that the file does not hold. A metric may have another
// direction in another scenario.
func (m *Import) derived(workload, name string, x workloads.Metric, lacks string, v, res float64) val {
	x.Name = name
	if d, ok := m.o.Better[name]; ok {
		x.Better = d
	}
	key := metricKey{workload, name}
	if i, ok := m.findAt[key]; ok && m.metric[i].Better != x.Better {
		key.name += " " + string(x.Better)
	}
	i, ok := m.findAt[key]
	if !ok {
		i = int32(len(m.metric))
		m.metric, m.findAt[key] = append(m.metric, x), i
	}
	if lacks != "" {
		return val{metric: i, why: m.name(lacks)}
	}
	if math.IsInf(v, 0) || math.IsNaN(v) {
		return val{metric: i, why: m.name("the numbers are too large")}
	}
	return val{metric: i, v: v, res: res}
}

// latency looks for latencies that have the shape of random phases.
func (m *Import) latency(t *trial) {
	find := func(names ...string) float64 {
		for _, v := range m.of(t) {
			words := strings.FieldsFunc(strings.ToLower(m.metric[v.metric].Name), func(r rune) bool { return r == '_' || r == '.' || r == ' ' })
			if v.why == 0 && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) }) {
				return v.v
			}
		}
		return 0
	}
	mean, sd, most := find("mean", "avg"), find("sd", "stddev", "stdev"), find("max")
	if mean <= 0 || sd <= 0 || most <= 0 {
		return
	}
	if r, q := sd/mean, most/mean; math.Abs(r-1/math.Sqrt(3)) < 0.01 && q > 1.9 && q < 2.15 {
		m.warn(t, fmt.Sprintf("sd/mean = %.3f and max/mean = %.2f are those of a uniform distribution from 0 (0.577 and 2): "+
			"these latencies look like the phase of something periodic in the measurement, not like waiting for a CPU", r, q))
	}
}

func (m *Import) warn(t *trial, text string) {
	if t.more == nil {
		t.more = &extra{}
	}
	t.more.warnings = append(t.more.warnings, text)
}
