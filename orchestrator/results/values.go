package results

import (
	"math"
	"slices"

	"kernsweep/workloads"
)

// BootValues are a metric's values in one boot of a cell, by repeat.
type BootValues struct {
	Boot    int
	Block   int
	Session int // that asked for the boot, from 1; 0: not known
	Values  []float64
	// Reported is the spread and the count behind Values[0] where the tool
	// printed an average of N runs and not the runs; nil: the values are raw.
	Reported *workloads.Value
}

// Lack is a reason why trials gave no value, and in how many.
type Lack struct {
	Reason string
	Trials int
}

// Measured is one metric of one cell, in boots.
type Measured struct {
	Boots      []BootValues // in the order of their numbers; a boot without a value is not there
	Lacks      []Lack
	Resolution float64 // the coarsest step that a tool printed a value with; 0: exact or unknown
}

// Values of one metric of a cell: the newest valid attempt of every slot, in the
// boot it ran in, warm-ups left out. Values that are no finite numbers are among
// the lacks.
func (m *Model) Values(c Cell, metric string) Measured {
	var out Measured
	for _, b := range m.ByBoot(c) {
		v := BootValues{Boot: b.Boot}
		if s := m.Boot(c.Target, b.Boot); s != nil {
			v.Session = s.Session
		}
		for _, a := range b.Trials {
			v.Block = a.Slot.Block
			v.take(a, metric, &out)
		}
		if len(v.Values) > 0 {
			out.Boots = append(out.Boots, v)
		}
	}
	return out
}

func (b *BootValues) take(a *Attempt, metric string, out *Measured) {
	x, why := a.Value(metric)
	switch {
	case why != "":
		out.lack(why)
		return
	case len(x.Each) > 0:
		for _, v := range x.Each {
			b.add(v, out)
		}
	default:
		b.add(x.Value, out)
		if x.N > 1 {
			r := x // x itself is none for the heap
			b.Reported = &r
		}
	}
	out.Resolution = math.Max(out.Resolution, x.Resolution)
}

func (b *BootValues) add(v float64, out *Measured) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		out.lack("not a finite number")
		return
	}
	b.Values = append(b.Values, v)
}

func (m *Measured) lack(why string) {
	i := slices.IndexFunc(m.Lacks, func(l Lack) bool { return l.Reason == why })
	if i < 0 {
		i, m.Lacks = len(m.Lacks), append(m.Lacks, Lack{Reason: why})
	}
	m.Lacks[i].Trials++
}

// Value of an attempt by the metric's name, or why it has none.
func (a *Attempt) Value(metric string) (workloads.Value, string) {
	if a.Parsed != nil {
		for _, v := range a.Parsed.Values {
			if v.Name == metric {
				return v, v.Missing
			}
		}
	}
	return workloads.Value{}, "the trial gave no such value"
}
