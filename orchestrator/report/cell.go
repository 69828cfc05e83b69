package report

import (
	"fmt"
	"slices"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

func (b *builder) cell(p results.PlannedCell) Cell {
	c := Cell{PlannedCell: p, Outcomes: map[results.Outcome]int{}, NotRun: b.notRun(p)}
	counted := b.m.ByBoot(p.Cell)
	valid := map[*results.Attempt]bool{}
	for _, boot := range counted {
		for _, a := range boot.Trials {
			valid[a] = true
			for _, w := range warningsOf(a) {
				c.Warnings = count(c.Warnings, w)
			}
		}
	}
	trials := b.m.TrialsOf(p.Cell)
	n := 0
	for _, t := range trials {
		n += len(t.Attempts)
	}
	c.Trials = make([]Trial, 0, n)
	for _, t := range trials {
		if !t.Slot.Warmup() {
			c.Outcomes[t.Outcome()]++
			c.find(t.Final())
		}
		for _, a := range t.Attempts {
			c.Trials = append(c.Trials, b.trial(a, valid[a]))
		}
	}
	c.Figures = b.figures(p.Cell, b.metrics(p.Cell, counted))
	c.Activity = activity(counted)
	if len(counted) == 0 {
		b.empty(&c)
	}
	return c
}

func (b *builder) trial(a *results.Attempt, counts bool) Trial {
	t := Trial{Block: a.Slot.Block, Boot: a.Slot.Boot, Repeat: a.Slot.Repeat, Attempt: a.Number, Session: a.Session, Counts: counts,
		Outcome: a.Outcome, Reason: a.Reason, Collect: a.Collect, Started: a.Started, Ended: a.Ended,
		Activity: a.Summary, Findings: a.Findings}
	if a.Number > 0 && !a.Started.IsZero() {
		t.Dir = b.rel(b.run.TrialDir(a.Slot, a.Number))
	}
	t.Warnings = warningsOf(a)
	if a.Parsed != nil {
		t.Values, t.Notes = a.Parsed.Values, a.Parsed.Notes
	}
	return t
}

// empty says why a cell has no figures.
func (b *builder) empty(c *Cell) {
	for _, t := range b.doc.Targets {
		for _, k := range t.Kernels {
			if t.Name == c.Target && k.Name == c.Kernel {
				c.DidNotBoot = k.DidNotBoot
			}
		}
	}
	switch {
	case c.NA != "":
		c.Empty = c.NA
	case c.DidNotBoot != nil:
		c.Empty = "did not boot"
	default:
		c.Empty = "not run"
		for _, t := range b.m.TrialsOf(c.Cell) {
			if !t.Slot.Warmup() {
				a := t.Final()
				c.Empty = string(a.Outcome)
				if a.Reason != "" {
					c.Empty += ": " + a.Reason
				}
				break
			}
		}
	}
}

// metrics of a cell: those the plan promises, then others the trials had.
func (b *builder) metrics(c results.Cell, counted []results.BootTrials) []workloads.Metric {
	list := slices.Clone(b.state.Plan.Metrics[c.Workload+"."+c.Scenario])
	for _, boot := range counted {
		for _, a := range boot.Trials {
			for _, v := range values(a) {
				if !slices.ContainsFunc(list, func(m workloads.Metric) bool { return m.Name == v.Name }) {
					list = append(list, v.Metric)
				}
			}
		}
	}
	return list
}

func values(a *results.Attempt) []workloads.Value {
	if a.Parsed == nil {
		return nil
	}
	return a.Parsed.Values
}

func (b *builder) figures(c results.Cell, metrics []workloads.Metric) []Figure {
	out := []Figure{}
	for _, m := range metrics {
		f := Figure{Metric: m}
		got := b.m.Values(c, m.Name)
		boots := make([][]float64, len(got.Boots))
		for i, x := range got.Boots {
			boots[i] = x.Values
			f.boots = append(f.boots, x.Boot)
			if r := x.Reported; r != nil {
				f.Reported = append(f.Reported, Reported{Boot: x.Boot, N: r.N, SD: r.SD})
			}
		}
		for _, l := range got.Lacks {
			f.Missing = append(f.Missing, Counted{l.Reason, l.Trials})
		}
		f.Summary = stats.Summarise(boots, got.Resolution)
		if f.Raw == nil {
			f.Raw, f.BootValues = [][]float64{}, []float64{}
		}
		out = append(out, f)
	}
	return out
}

func count(list []Counted, text string) []Counted {
	for i := range list {
		if list[i].Text == text {
			list[i].Trials++
			return list
		}
	}
	return append(list, Counted{text, 1})
}

// activity is nil when no trial has a summary.
func activity(counted []results.BootTrials) *Activity {
	var got []*results.Activity
	for _, b := range counted {
		for _, a := range b.Trials {
			if a.Summary != nil && a.Summary.Samples > 0 {
				got = append(got, a.Summary)
			}
		}
	}
	if len(got) == 0 {
		return nil
	}
	median := func(column string, of func(*results.Activity) float64) stats.Number {
		var x []float64
		for _, a := range got {
			if !slices.Contains(a.Missing, column) {
				x = append(x, of(a))
			}
		}
		if len(x) == 0 {
			return stats.Missing("no sample has column %s", column)
		}
		return stats.Num(stats.Quantile(x, 0.5))
	}
	return &Activity{
		Trials:     len(got),
		Switches:   median("cs", func(a *results.Activity) float64 { return a.Switches }),
		Interrupts: median("in", func(a *results.Activity) float64 { return a.Interrupts }),
		User:       median("us", func(a *results.Activity) float64 { return a.User }),
		System:     median("sy", func(a *results.Activity) float64 { return a.System }),
		Idle:       median("id", func(a *results.Activity) float64 { return a.Idle }),
		Wait:       median("wa", func(a *results.Activity) float64 { return a.Wait }),
		Steal:      median("st", func(a *results.Activity) float64 { return a.Steal }),
	}
}

// figure of a cell by a test on its name, nil when there is none.
func (c *Cell) figure(is func(name string) bool) *Figure {
	for i := range c.Figures {
		if is(c.Figures[i].Name) {
			return &c.Figures[i]
		}
	}
	return nil
}

// n is "2x3" (boots x trials in each), or "5 in 2" where they differ.
func (f *Figure) n() string {
	if f.Boots == 0 {
		return "0"
	}
	for _, b := range f.Raw {
		if len(b) != len(f.Raw[0]) {
			return fmt.Sprintf("%d in %d", f.Trials, f.Boots)
		}
	}
	return fmt.Sprintf("%dx%d", f.Boots, len(f.Raw[0]))
}

// warningsOf are the soft things said about an attempt: by the workload, by its
// counters, and by the rules of validity.
func warningsOf(a *results.Attempt) []string {
	var w []string
	if a.Parsed != nil {
		w = append(w, a.Parsed.Warnings...)
	}
	if a.Summary != nil {
		w = append(w, a.Summary.Warnings...)
	}
	for _, f := range a.Findings {
		if !f.Hard {
			w = addNew(w, f.Text)
		}
	}
	return w
}

// find counts the findings of the attempt that decides a slot.
func (c *Cell) find(a *results.Attempt) {
	for _, f := range a.Findings {
		i := slices.IndexFunc(c.Findings, func(x results.Found) bool { return x.Rule == f.Rule && x.Hard == f.Hard })
		if i < 0 {
			i = len(c.Findings)
			c.Findings = append(c.Findings, results.Found{Finding: f, Target: c.Target, Kernel: c.Kernel, Workload: c.Workload, Scenario: c.Scenario})
		}
		c.Findings[i].Trials++
	}
}
