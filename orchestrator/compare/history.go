package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// HistoryRow is one metric of one cell over several runs, the oldest first.
type HistoryRow struct {
	results.Cell
	Metric workloads.Metric `json:"metric"`
	Points []HistoryPoint   `json:"points"`
	// Slope of a straight line, as a share for each run, with its 95 % interval.
	Slope    stats.Number `json:"slope_per_run"`
	Low      stats.Number `json:"ci95_low"`
	High     stats.Number `json:"ci95_high"`
	Spark    string       `json:"spark"` // a mark for each run, higher for larger values; "·" where there is none
	Sentence string       `json:"sentence"`
}

// HistoryPoint is the median of a cell's boots in one run.
type HistoryPoint struct {
	Run      string       `json:"run"`
	Created  time.Time    `json:"created"`
	Median   stats.Number `json:"median"`
	Boots    int          `json:"boots"`
	Unproven string       `json:"unproven,omitempty"` // no boot of it was proven: why
}

// History follows each cell of the last of the runs through all of them. A cell
// that a run lacks, or measured in another way, has no value there, with the
// reason. Informative metrics are left out.
func History(runs []RunSide, sel Selection) []HistoryRow {
	if len(runs) == 0 {
		return nil
	}
	last := &runs[len(runs)-1]
	js := make([]*judging, len(runs))
	for i := range runs {
		js[i] = newJudging(runs[i].Meta.Name, runs[i].State, Options{Findings: runs[i].Findings})
	}
	out := []HistoryRow{}
	for _, c := range cellsOf(last, &sel) {
		for _, m := range metricsOf(last.State, c) {
			if m.Better == workloads.Informative {
				continue
			}
			row := HistoryRow{Cell: c, Metric: m}
			for i := range runs {
				row.Points = append(row.Points, point(&runs[i], last, js[i], c, m))
			}
			row.trend()
			out = append(out, row)
		}
	}
	return out
}

func point(r, last *RunSide, j *judging, c results.Cell, m workloads.Metric) HistoryPoint {
	p := HistoryPoint{Run: r.Meta.Name, Created: r.Meta.Created}
	if !slices.Contains(cellsOf(r, &Selection{}), c) {
		p.Median = stats.Missing("the run has no such cell")
		return p
	}
	if why := designDiffers(r, last, c); why != "" {
		p.Median = stats.Missing("measured in another way: %s", why)
		return p
	}
	if a, b := identity(r.State.Model, c.Target), identity(last.State.Model, c.Target); a != nil && b != nil {
		if why := a.Differs(b); why != "" {
			p.Median = stats.Missing("it was another machine: %s", why)
			return p
		}
	}
	s := j.side(c, m.Name)
	if p.Boots = len(s.boots); p.Boots == 0 {
		p.Median = stats.Missing("%s", s.none)
		return p
	}
	x, _ := samples(&s, &side{})
	p.Median, p.Unproven = stats.Num(stats.Quantile(x.Values, 0.5)), s.unproven
	return p
}

// leastTrend is how many runs a slope with an interval takes.
const leastTrend = 3

func (r *HistoryRow) trend() {
	values := make([]float64, len(r.Points))
	n := 0
	for i, p := range r.Points {
		if values[i] = math.NaN(); p.Median.OK() {
			values[i] = p.Median.Value
			n++
		}
	}
	r.Spark = sparkline(values)
	l := stats.Trend(values)
	share := func(n stats.Number) stats.Number { // the line is one of logarithms, where there are any
		if n.OK() && !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 }) {
			return stats.Num(math.Expm1(n.Value))
		}
		return n
	}
	r.Slope, r.Low, r.High = share(l.Slope), share(l.Low), share(l.High)
	have := fmt.Sprintf("%s of %d", plural.Of(n, "run"), len(values))
	switch {
	case n < leastTrend:
		r.Sentence = fmt.Sprintf("no trend from %s, need %d", have, leastTrend)
	case !r.Slope.OK():
		r.Sentence = fmt.Sprintf("no trend: %s, %s", r.Slope.Missing, have)
	case !r.Low.OK() || !r.High.OK():
		r.Sentence = fmt.Sprintf("%s a run, no interval: %s, %s", percent(r.Slope.Value), cmp.Or(r.Low.Missing, r.High.Missing), have)
	default:
		r.Sentence = fmt.Sprintf("%s a run (95 %% CI %s to %s), %s: %s", percent(r.Slope.Value), percent(r.Low.Value), percent(r.High.Value), have, r.direction())
	}
}

// direction of the trend in words.
func (r *HistoryRow) direction() string {
	switch up := r.Low.Value > 0; {
	case r.Low.Value <= 0 && r.High.Value >= 0:
		return "no trend shown"
	case up == (r.Metric.Better == workloads.HigherIsBetter):
		return "it gets better"
	}
	return "it gets worse"
}

// sparkline marks each value between the least and the greatest.
func sparkline(values []float64) string {
	marks := []rune("▁▂▃▄▅▆▇█")
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteRune('·')
		case high == low:
			b.WriteRune(marks[len(marks)/2])
		default:
			at := (v/2 - low/2) / (high/2 - low/2) // halved first: the distance of huge values is none
			b.WriteRune(marks[min(len(marks)-1, int(at*float64(len(marks))))])
		}
	}
	return b.String()
}
