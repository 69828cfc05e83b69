package importer

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// cell is the index of a cell, which is made when it is new.
func (m *Import) cell(c results.Cell) int32 {
	i, ok := m.cellAt[c]
	if !ok {
		i = int32(len(m.cells))
		m.cells, m.cellAt[c] = append(m.cells, c), i
	}
	return i
}

// name is the index of a text.
func (m *Import) name(s string) int32 {
	i, ok := m.nameAt[s]
	if !ok {
		i = int32(len(m.names))
		s = strings.Clone(s) // not the whole file
		m.names, m.nameAt[s] = append(m.names, s), i
	}
	return i
}

// metricOf is the index of a workload's metric. The same name in another unit is
// an error: such figures must not meet.
func (m *Import) metricOf(workload string, x workloads.Metric) (int32, error) {
	key := metricKey{workload, x.Name}
	i, ok := m.findAt[key]
	if !ok {
		if d, ok := m.o.Better[x.Name]; ok {
			x.Better = d
		}
		i = int32(len(m.metric))
		m.metric, m.findAt[key] = append(m.metric, x), i
		return i, nil
	}
	if was := m.metric[i].Unit; was != x.Unit {
		return 0, fmt.Errorf("%s is in %q here and was in %q before: give the two different names", x.Name, x.Unit, was)
	}
	return i, nil
}

// kernelOf is the kernel of a file that does not say.
func (m *Import) kernelOf(file int) (string, error) {
	k := m.files[file].Kernel
	if k == "" {
		k = m.o.Kernel
	}
	if k == "" {
		return "", fmt.Errorf("it does not say which kernel it is of: write KERNEL=%s, or --kernel", m.files[file].Name)
	}
	return k, nil
}

// place is a cell by what the file says; empty parts are the options'.
func (m *Import) place(kernel, scenario string) int32 {
	if scenario == "" {
		scenario = m.o.Scenario
	}
	return m.cell(results.Cell{Target: m.o.Target, Kernel: kernel, Workload: m.workload, Scenario: scenario})
}

// add adds a trial with whole values.
func (m *Import) add(t trial, values []workloads.Value) error {
	t.from = int32(len(m.vals))
	for _, v := range values {
		x, err := m.metricOf(m.cells[t.cell].Workload, v.Metric)
		if err != nil {
			return atLine{int(t.line), err}
		}
		m.vals = append(m.vals, val{metric: x, why: m.name(v.Missing), n: int32(v.N), v: v.Value, res: v.Resolution, sd: v.SD})
	}
	t.to = int32(len(m.vals))
	m.trials = append(m.trials, t)
	return nil
}

func (m *Import) of(t *trial) []val { return m.vals[t.from:t.to] }

func (t *trial) ok() bool { return t.more == nil || t.more.outcome == "" }

// value of a trial by its metric's name.
func (m *Import) value(t *trial, name string) (val, bool) {
	for _, v := range m.of(t) {
		if m.metric[v.metric].Name == name && v.why == 0 {
			return v, true
		}
	}
	return val{}, false
}

func (m *Import) say(format string, args ...any) {
	if s := fmt.Sprintf(format, args...); !slices.Contains(m.notes, s) {
		m.notes = append(m.notes, s)
	}
}

// primaries marks the primary metric of each workload: the one asked for, else
// the kind's, else the first that has a direction.
func (m *Import) primaries() error {
	for _, w := range m.workloads() {
		var mine []int
		for i := range m.metric {
			if m.findAt[metricKey{w, m.metric[i].Name}] == int32(i) {
				mine = append(mine, i)
			}
		}
		has := func(name string) int {
			for _, i := range mine {
				if m.metric[i].Name == name {
					return i
				}
			}
			return -1
		}
		kind, _, _ := strings.Cut(w, ".")
		want := kindPrimaries(kind)
		if m.o.Primary != "" {
			if want = []string{m.o.Primary}; has(m.o.Primary) < 0 {
				return fmt.Errorf("--primary %s: %s has no such metric; there are: %s", m.o.Primary, w, strings.Join(m.metricNames(mine), ", "))
			}
		}
		best := -1
		for _, name := range want {
			if best = has(name); best >= 0 {
				break
			}
		}
		for _, i := range mine {
			if best < 0 && m.metric[i].Better != workloads.Informative {
				best = i
			}
		}
		if best >= 0 {
			m.metric[best].Primary = true
		}
	}
	for name := range m.o.Better {
		if !slices.ContainsFunc(m.metric, func(x workloads.Metric) bool { return x.Name == name }) {
			return fmt.Errorf("--better %s: there is no such metric; there are: %s", name, strings.Join(m.metricNames(nil), ", "))
		}
	}
	return nil
}

func kindPrimaries(kind string) []string {
	switch kind {
	case "iperf":
		return []string{"throughput"}
	case "kernbench", "time":
		return []string{"elapsed"}
	case "crunch":
		return []string{"makespan"}
	case "latency":
		return []string{"p99", "mean_lat", "avg_lat", "mean", "max_lat", "max"}
	}
	return nil
}

func (m *Import) metricNames(of []int) []string {
	var names []string
	for i, x := range m.metric {
		if (of == nil || slices.Contains(of, i)) && !slices.Contains(names, x.Name) {
			names = append(names, x.Name)
		}
	}
	return names
}

func (m *Import) workloads() []string {
	var out []string
	for _, c := range m.cells {
		if !slices.Contains(out, c.Workload) {
			out = append(out, c.Workload)
		}
	}
	return out
}
