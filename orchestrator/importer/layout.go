package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

const (
	// series is how many trials a cell may have in one boot as trials of their own;
	// more become one trial that holds the series.
	series = 100
	// longest series of all metrics together in one trial: a journal line is bounded.
	longest = 400_000
)

// boot is a boot as the import knows it.
type boot struct {
	target, kernel string
	name           string // what the file calls it
	number, block  int
	trials         []int32
}

// base is what a run holds already, to which a session is added.
type base struct {
	number func(target string) int         // the next boot's
	block  func(target, kernel string) int // the newest block
}

// fresh is the base of a new run.
func fresh() base {
	return base{number: func(string) int { return 1 }, block: func(string, string) int { return 0 }}
}

// boots lays the trials out: which ran in one boot, in the order of the files or
// of the column order.
func (m *Import) boots(b base) []*boot {
	m.inOrder()
	type key struct {
		target, kernel string
		which          int32
	}
	at := map[key]*boot{}
	var out []*boot
	number, block := map[string]int{}, map[[2]string]int{}
	for i := range m.trials {
		t := &m.trials[i]
		c := m.cells[t.cell]
		k := key{target: c.Target, kernel: c.Kernel}
		switch m.o.Boots {
		case BootsColumn:
			k.which = t.boot
		case BootsEachFile:
			k.which = t.file
		case BootsEachRow:
			k.which = int32(i)
		}
		x := at[k]
		if x == nil {
			if _, ok := number[c.Target]; !ok {
				number[c.Target] = b.number(c.Target)
			}
			of := [2]string{c.Target, c.Kernel}
			if _, ok := block[of]; !ok {
				block[of] = b.block(c.Target, c.Kernel)
			}
			block[of]++
			x = &boot{target: c.Target, kernel: c.Kernel, number: number[c.Target], block: block[of]}
			if m.o.Boots == BootsColumn {
				x.name = m.names[t.boot]
			}
			number[c.Target]++
			at[k] = x
			out = append(out, x)
		}
		x.trials = append(x.trials, int32(i))
	}
	return out
}

// inOrder sorts by the column order, where every trial has it.
func (m *Import) inOrder() {
	if slices.ContainsFunc(m.trials, func(t trial) bool { return !t.ordered }) {
		return
	}
	slices.SortStableFunc(m.trials, func(a, b trial) int { return cmp.Compare(a.order, b.order) })
}

// order is what the column order says of the design, "" without one.
func (m *Import) order() string {
	if len(m.trials) == 0 || slices.ContainsFunc(m.trials, func(t trial) bool { return !t.ordered }) {
		return ""
	}
	changes, kernels, last := map[string]int{}, map[string]map[string]bool{}, map[string]string{}
	for i := range m.trials {
		c := m.cells[m.trials[i].cell]
		if kernels[c.Target] == nil {
			kernels[c.Target] = map[string]bool{}
		}
		kernels[c.Target][c.Kernel] = true
		if last[c.Target] != c.Kernel {
			last[c.Target] = c.Kernel
			changes[c.Target]++
		}
	}
	for t, n := range changes {
		if len(kernels[t]) > 1 && n > len(kernels[t]) {
			return "interleaved"
		}
	}
	return "blocked"
}

// unproven is why a boot of an import proves nothing.
func (m *Import) unproven() string {
	switch m.o.Boots {
	case BootsColumn:
		return "imported: boots as the table tells them"
	case BootsEachFile:
		return "imported: each file is taken for a boot"
	case BootsEachRow:
		return "imported: each trial is taken for a boot"
	}
	return "imported: its boots are not known, and all trials count as one"
}

// records of a boot: the boot, then its trials.
func (m *Import) records(b *boot) []results.Record {
	x := results.Boot{Number: b.number, Kernel: b.kernel, Block: b.block, Outcome: results.OK}
	about := m.told[b.kernel]
	x.Record = targets.BootRecord{Kernel: b.kernel, Release: about.release, Scheduler: about.schedulerFound(), Unproven: m.unproven()}
	if m.o.Boots != BootsUnknown {
		x.Declared = strings.TrimPrefix(m.unproven(), "imported: ")
	}
	if b.name != "" {
		x.Record.Notes = []string{"called " + b.name + " in the table"}
	}
	out := []results.Record{{Kind: results.KindBoot, Lane: b.target, Boot: &x}}
	byCell := map[int32][]int32{}
	var cells []int32
	for _, i := range b.trials {
		c := m.trials[i].cell
		if byCell[c] == nil {
			cells = append(cells, c)
		}
		byCell[c] = append(byCell[c], i)
	}
	for _, c := range cells {
		slot := results.Slot{Cell: m.cells[c], Block: b.block, Boot: b.number}
		if list := byCell[c]; len(list) > series && m.plain(list) {
			out = append(out, m.asSeries(slot, list)...)
		} else {
			out = append(out, m.asTrials(slot, list)...)
		}
	}
	return out
}

// asTrials keeps the numbers of the file where they are different from each other.
func (m *Import) asTrials(slot results.Slot, list []int32) []results.Record {
	seen := map[int32]bool{}
	for _, i := range list {
		if r := m.trials[i].repeat; r > 0 && !seen[r] {
			seen[r] = true
		}
	}
	own := len(seen) == len(list)
	var out []results.Record
	for n, i := range list {
		t := &m.trials[i]
		s := slot
		if s.Repeat = n + 1; own {
			s.Repeat = int(t.repeat)
		}
		p := &workloads.Parsed{Notes: []string{"from " + m.where(t)}}
		for _, v := range m.of(t) {
			p.Values = append(p.Values, m.valueOf(v))
		}
		r := results.Record{Kind: results.KindJudged, Lane: slot.Target, Slot: &s, Attempt: 1, Outcome: results.OK, Parsed: p}
		if e := t.more; e != nil {
			r.Outcome, r.Reason, r.Summary = cmp.Or(e.outcome, results.OK), e.reason, e.activity
			p.Notes, p.Warnings = append(p.Notes, e.notes...), e.warnings
		}
		out = append(out, r)
	}
	return out
}

func (m *Import) where(t *trial) string {
	name := shown(m.files[t.file].Name)
	if t.line > 1 {
		return fmt.Sprintf("%s, line %d", name, t.line)
	}
	return name
}

func (m *Import) valueOf(v val) workloads.Value {
	return workloads.Value{Metric: m.metric[v.metric], Value: v.v, Missing: m.names[v.why], Resolution: v.res, N: int(v.n), SD: v.sd}
}

// plain trials have nothing but values, and may become a series.
func (m *Import) plain(list []int32) bool {
	for _, i := range list {
		t := &m.trials[i]
		if t.more != nil && (t.more.outcome != "" || t.more.activity != nil) {
			return false
		}
		for _, v := range m.of(t) {
			if v.n > 1 {
				return false
			}
		}
	}
	return true
}

// asSeries makes trials that hold many values each, as few as journal lines allow.
func (m *Import) asSeries(slot results.Slot, list []int32) []results.Record {
	width := 1
	for _, i := range list {
		width = max(width, len(m.of(&m.trials[i])))
	}
	var out []results.Record
	for part := range slices.Chunk(list, max(1, longest/width)) {
		s := slot
		s.Repeat = len(out) + 1
		p := &workloads.Parsed{Notes: []string{fmt.Sprintf("a series of %d from %s on", len(part), m.where(&m.trials[part[0]]))}}
		at := map[int32]int{}
		for _, i := range part {
			for _, v := range m.of(&m.trials[i]) {
				n, ok := at[v.metric]
				if !ok {
					n, at[v.metric] = len(p.Values), len(p.Values)
					p.Values = append(p.Values, workloads.Value{Metric: m.metric[v.metric], Each: make([]float64, 0, len(part))})
				}
				x := &p.Values[n]
				if v.why != 0 {
					x.Missing = m.names[v.why]
					continue
				}
				x.Each = append(x.Each, v.v)
				x.Resolution = max(x.Resolution, v.res)
			}
			if e := m.trials[i].more; e != nil {
				for _, w := range e.warnings {
					if len(p.Warnings) < 10 && !slices.Contains(p.Warnings, w) {
						p.Warnings = append(p.Warnings, w)
					}
				}
			}
		}
		for k := range p.Values {
			settle(&p.Values[k])
		}
		out = append(out, results.Record{Kind: results.KindJudged, Lane: slot.Target, Slot: &s, Attempt: 1, Outcome: results.OK, Parsed: p})
	}
	return out
}

// settle gives a series its mean; some members that are missing do not make the
// others missing.
func settle(x *workloads.Value) {
	if len(x.Each) == 0 {
		x.Each = nil
		return
	}
	x.Missing = ""
	mean := 0.0
	for i, v := range x.Each {
		mean += (v - mean) / float64(i+1)
	}
	x.Value = mean
}
