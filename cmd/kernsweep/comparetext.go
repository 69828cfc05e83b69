package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// printRuns prints two runs beside each other: a table, and a sentence for each
// primary metric. Others are in the table when asked for.
func printRuns(w io.Writer, r *compare.RunsJudgement, secondary bool) error {
	for _, side := range []struct {
		letter string
		compare.RunName
	}{{"A", r.A}, {"B", r.B}} {
		fmt.Fprintf(w, "run %s  %s  (sweep %s)\n", side.letter, live.Safe(side.Name), live.Safe(side.Sweep))
	}
	say := func(before string, list []string) {
		for _, s := range list {
			fmt.Fprintln(w, before+live.Safe(s))
		}
	}
	say("WARNING: ", r.Machines)
	say("left out: ", r.LeftOut)
	say("image: ", r.Images)
	say("note: ", r.Notes)
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "TARGET\tKERNEL\tWORKLOAD\tMETRIC\tRUN A\tRUN B\tUNIT\tBOOTS\tVERDICT")
	left := 0
	for _, c := range r.Comparisons {
		verdict := string(c.Verdict)
		if !c.Primary {
			if !secondary {
				left++
				continue
			}
			verdict = "-"
		}
		fmt.Fprintln(t, columnsOf(c.Target, c.Kernel, cellName(c.Workload, c.Scenario), c.Metric.Name, brief(c.Base), brief(c.Value), c.Metric.Unit,
			fmt.Sprintf("%d, %d", c.Boots[0], c.Boots[1]), verdict))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Fprintf(w, "%s that no verdict is about: --secondary\n", plural.Of(left, "more comparison"))
	}
	fmt.Fprintln(w)
	for _, c := range r.Comparisons {
		if !c.Primary {
			continue
		}
		fmt.Fprintf(w, "%s %s %s %s: %s\n", live.Safe(c.Target), live.Safe(c.Kernel), live.Safe(cellName(c.Workload, c.Scenario)), live.Safe(c.Metric.Name), live.Safe(c.Sentence))
		if c.MoreCommand != "" {
			fmt.Fprintf(w, "    %s\n", live.Safe(c.MoreCommand))
		}
		for _, f := range c.Findings {
			fmt.Fprintf(w, "    %s\n", live.Safe(finding(f.Rule, f.Text, f.Evidence)))
		}
	}
	return nil
}

func finding(rule, text, evidence string) string {
	if evidence != "" {
		text += " (" + evidence + ")"
	}
	return rule + ": " + text
}

func cellName(workload, scenario string) string { return workload + "." + scenario }

// brief is a number for a column; why it is missing stands in the sentence.
func brief(n stats.Number) string {
	if !n.OK() {
		return "n/a"
	}
	return strconv.FormatFloat(n.Value, 'g', 5, 64)
}

// printHistory prints a line for each cell and primary metric, or for each metric
// of a cell that has no primary one, and why values are missing.
func printHistory(w io.Writer, rows []compare.HistoryRow) error {
	for i, p := range rows[0].Points {
		fmt.Fprintf(w, "run %d  %s\n", i+1, live.Safe(p.Run))
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	head := "TARGET\tKERNEL\tWORKLOAD\tMETRIC\tUNIT\tTREND"
	for i := range rows[0].Points {
		head += fmt.Sprintf("\t%d", i+1)
	}
	fmt.Fprintln(t, head)
	shown := shownRows(rows)
	for _, r := range shown {
		line := columnsOf(r.Target, r.Kernel, cellName(r.Workload, r.Scenario), r.Metric.Name, r.Metric.Unit) + "\t" + r.Spark
		for _, p := range r.Points {
			line += "\t" + brief(p.Median)
			if p.Unproven != "" {
				line += "?"
			}
		}
		fmt.Fprintln(t, line)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	unproven := false
	for _, r := range shown {
		fmt.Fprintf(w, "%s %s %s %s: %s\n", live.Safe(r.Target), live.Safe(r.Kernel), live.Safe(cellName(r.Workload, r.Scenario)), live.Safe(r.Metric.Name), live.Safe(r.Sentence))
		for i, p := range r.Points {
			if !p.Median.OK() {
				fmt.Fprintf(w, "    run %d: n/a (%s)\n", i+1, live.Safe(p.Median.Missing))
			}
			unproven = unproven || p.Unproven != ""
		}
	}
	if unproven {
		fmt.Fprintln(w, "\n? the kernel of these boots was not proven")
	}
	return nil
}

func shownRows(rows []compare.HistoryRow) []compare.HistoryRow {
	primary := map[string]bool{}
	for _, r := range rows {
		primary[r.Workload+"."+r.Scenario] = primary[r.Workload+"."+r.Scenario] || r.Metric.Primary
	}
	var out []compare.HistoryRow
	for _, r := range rows {
		if r.Metric.Primary || !primary[r.Workload+"."+r.Scenario] && r.Metric.Better != workloads.Informative {
			out = append(out, r)
		}
	}
	return out
}

// columnsOf joins cells of a table: no name can make a column of its own.
func columnsOf(cells ...string) string {
	for i := range cells {
		cells[i] = live.Safe(cells[i])
	}
	return strings.Join(cells, "\t")
}
