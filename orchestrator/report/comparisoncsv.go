package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
)

// comparisonHead names the columns of --format comparisons, a row each. Change
// and its intervals are shares where scale is ratio, else in the metric's unit.
func comparisonHead() []string {
	return []string{"run", "target", "workload", "scenario", "kernel", "baseline", "metric", "unit", "better", "primary", "verdict", "base", "value",
		"scale", "change", "ci95_low", "ci95_high", "ci90_low", "ci90_high", "half_width", "p", "p_holm", "p_attainable", "base_boots", "boots",
		"effect", "more_boots", "missing", "findings", "sentence"}
}

func writeComparisons(w io.Writer, src *source, _ Options) error {
	out := csv.NewWriter(w)
	if err := out.Write(comparisonHead()); err != nil {
		return err
	}
	for i := range src.doc.Judgement.Comparisons {
		row := csvComparison(src.doc.Run.Name, &src.doc.Judgement.Comparisons[i])
		for k := range row {
			row[k] = csvText(row[k])
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvComparison(run string, c *compare.Comparison) []string {
	missing := ""
	num := func(n stats.Number) string {
		if !n.OK() {
			if missing == "" {
				missing = n.Missing
			}
			return ""
		}
		return strconv.FormatFloat(n.Value, 'g', -1, 64)
	}
	holm := ""
	if c.Primary {
		holm = num(c.Holm)
	}
	row := []string{run, c.Target, c.Workload, c.Scenario, c.Kernel, c.Baseline, c.Metric.Name, c.Metric.Unit, string(c.Metric.Better),
		strconv.FormatBool(c.Primary), string(c.Verdict), num(c.Base), num(c.Value), string(c.Scale), num(c.Change), num(c.Low), num(c.High),
		num(c.Low90), num(c.High90), num(c.HalfWidth), num(c.P), holm, num(c.Attainable), strconv.Itoa(c.Boots[0]), strconv.Itoa(c.Boots[1]),
		strconv.FormatFloat(c.Effect, 'g', -1, 64), strconv.Itoa(c.More)}
	return append(row, missing, csvFindings(c.Findings), c.Sentence)
}
