package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// enough says that the lane of a sweep with boots = "auto" needs no block from
// the planned boot at index i on. It looks at how wide the intervals are, never
// at where they lie: stopping for a difference would find one where none is. The
// record of it is durable before anything else happens. Blocks that are not of
// the run's own plan, or were begun before, are never left out.
func (l *lane) enough(ctx context.Context, i int) bool {
	d := &l.r.Plan.Design
	if l.full { // blocks that a later session added come after those of the plan
		return i < len(l.plan.Boots) && l.plan.Boots[i].Block <= d.MaxBoots
	}
	if !d.Auto || l.withdrawn != "" || l.cut != nil || i > 0 && i < len(l.plan.Boots) && l.plan.Boots[i-1].Block == l.plan.Boots[i].Block {
		return false
	}
	done := l.measured(i)
	if done < d.MinBoots || done > d.MaxBoots || done == l.sized {
		return false
	}
	l.sized = done
	s, err := l.state()
	if err != nil {
		l.note(ctx)("whether more blocks are needed cannot be told: " + err.Error())
		return false
	}
	if l.begun(s.Model, done+1) {
		return false
	}
	w := l.widths(s)
	wanted := d.Narrow()
	narrow, at := stats.Narrow(wanted, w.halves...)
	switch {
	case at < 0:
		l.note(ctx)(fmt.Sprintf("after block %d no primary metric has an interval that could tell when it is enough%s", done, w.without()))
		return false
	case !narrow:
		l.note(ctx)(fmt.Sprintf("after block %d the widest interval is %s; ±%.3g %% is asked for%s%s", done, w.text(at), 100*wanted, l.end(done), w.without()))
		return false
	case done == d.MaxBoots:
		return false // nothing is left out
	}
	e := &results.Enough{Blocks: done, Widest: w.names[at], HalfWidth: w.halves[at].Value, Wanted: wanted}
	l.record(ctx, results.Record{Kind: results.KindEnough, Enough: e})
	l.note(ctx)(plan.EnoughText(e) + w.without())
	l.full = true
	return true
}

// state is what is on file of the lane: the others' figures decide nothing here.
func (l *lane) state() (*results.State, error) {
	s, err := l.r.Run.State()
	if err != nil {
		return nil, err
	}
	other := func(r results.Record) bool { return r.Lane != "" && r.Lane != l.conf.Name }
	s.Model = results.Load(slices.DeleteFunc(slices.Clone(s.Journal.Records), other))
	s.Plan.Cells = slices.DeleteFunc(s.Plan.Cells, func(c results.PlannedCell) bool { return c.Target != l.conf.Name })
	return s, nil
}

// end says what max_boots makes of a lane that did not come to its width.
func (l *lane) end(done int) string {
	if done == l.r.Plan.Design.MaxBoots {
		return ", and max_boots is reached"
	}
	return ""
}

// measured is the number of the block before the planned boot at index i.
func (l *lane) measured(i int) int {
	switch {
	case i < len(l.plan.Boots):
		return l.plan.Boots[i].Block - 1
	case i > 0:
		return l.plan.Boots[i-1].Block
	}
	return 0
}

// begun says that a block has a trial on file that was tried: what was skipped
// when the target was given up was not.
func (l *lane) begun(m *results.Model, block int) bool {
	for _, t := range m.Trials {
		if t.Slot.Block == block && t.Outcome() != results.Skipped {
			return true
		}
	}
	return false
}

// widths are the half widths of a lane's primary metrics, as shares.
type widths struct {
	names  []string
	halves []stats.Number
	lacks  []string // what is not waited for, and why
}

func (w *widths) text(i int) string {
	if h := w.halves[i]; !h.OK() {
		return fmt.Sprintf("n/a (%s: %s)", w.names[i], h.Missing)
	}
	return fmt.Sprintf("±%.3g %% (%s)", 100*w.halves[i].Value, w.names[i])
}

// without names what is not waited for.
func (w *widths) without() string {
	if len(w.lacks) == 0 {
		return ""
	}
	return "; not waited for: " + strings.Join(w.lacks, ", ")
}

// widths are those of every primary comparison of the lane, and of a kernel by
// itself where it has nothing to be compared with. A cell without any value, or
// whose kernel is not booted any more, is not waited for.
func (l *lane) widths(s *results.State) widths {
	var w widths
	judged := map[compare.Key]map[string]stats.Number{}
	for _, c := range compare.Judge(l.r.Run.Name(), s, compare.Options{}).Comparisons {
		if judged[c.Key] == nil {
			judged[c.Key] = map[string]stats.Number{}
		}
		judged[c.Key][c.Metric.Name] = c.HalfWidth
	}
	for _, c := range s.Plan.Cells {
		if c.NA != "" {
			continue
		}
		for _, m := range s.Plan.Metrics[c.Workload+"."+c.Scenario] {
			if !s.Plan.Design.Decides(c.Workload, c.Scenario, m) {
				continue
			}
			name := fmt.Sprintf("kernel %s, %s.%s %s", c.Kernel, c.Workload, c.Scenario, m.Name)
			if why := l.hopeless(s.Model, c.Cell, m); why != "" {
				w.lacks = append(w.lacks, name+" ("+why+")")
				continue
			}
			if half, compared := l.half(s, judged, c, m); compared {
				w.names, w.halves = append(w.names, name), append(w.halves, half)
			}
		}
	}
	return w
}

// half is the half width for a cell's metric: compared with the baseline, or by
// itself. A baseline's own is of no interest where others are compared with it.
func (l *lane) half(s *results.State, judged map[compare.Key]map[string]stats.Number, c results.PlannedCell, m workloads.Metric) (half stats.Number, ok bool) {
	base := c.Cell
	base.Kernel = c.Baseline
	if c.Kernel == c.Baseline {
		for _, o := range s.Plan.Cells {
			with := c.Cell
			with.Kernel = o.Kernel
			if o.Cell == with && o.Kernel != c.Kernel && o.NA == "" && l.hopeless(s.Model, o.Cell, m) == "" {
				return stats.Number{}, false
			}
		}
		return alone(s.Model.Values(c.Cell, m.Name)), true
	}
	if l.hopeless(s.Model, base, m) != "" {
		return alone(s.Model.Values(c.Cell, m.Name)), true
	}
	key := compare.Key{Target: c.Target, Workload: c.Workload, Scenario: c.Scenario, Kernel: c.Kernel, Baseline: c.Baseline}
	if half, ok = judged[key][m.Name]; !ok {
		half = stats.Missing("it is not compared")
	}
	return half, true
}

// hopeless says why more blocks would not make the interval of a cell narrower.
func (l *lane) hopeless(m *results.Model, c results.Cell, metric workloads.Metric) string {
	if n := l.r.Plan.BootFailures; n > 0 && l.crashes[c.Kernel] >= n {
		return "the kernel is not booted any more"
	}
	if why := l.helm.leftOut(c.Kernel); why != "" {
		return "the kernel is left out, " + why
	}
	if v := m.Values(c, metric.Name); len(v.Boots) == 0 {
		if len(v.Lacks) > 0 {
			return "no value: " + v.Lacks[0].Reason
		}
		return "no value"
	}
	return ""
}

// alone is half the 95 % interval of a cell by itself, as a share.
func alone(v results.Measured) stats.Number {
	boots := make([][]float64, len(v.Boots))
	for i, b := range v.Boots {
		boots[i] = b.Values
	}
	sum := stats.Summarise(boots, v.Resolution)
	return sum.HalfWidth(v.Resolution)
}
