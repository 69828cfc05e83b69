package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// csvHead names the columns: one row per value of every attempt, warm-ups
// (repeat 0 and below) included, and one row without a metric for an attempt,
// or a planned cell, that has no values. n and sd are those of an average that a
// tool printed. Columns are only ever added at the end.
func csvHead() []string {
	return []string{"run", "target", "kernel", "workload", "scenario", "block", "boot", "repeat", "attempt", "counts",
		"outcome", "reason", "metric", "unit", "better", "value", "missing", "boot_id", "release", "scheduler", "proven",
		"n", "sd", "findings"}
}

func writeCSV(w io.Writer, src *source, _ Options) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHead()); err != nil {
		return err
	}
	boots := map[bootKey]*results.Boot{}
	for _, b := range src.doc.Boots {
		boots[bootKey{b.Lane, b.Number}] = b.Result
	}
	for _, wl := range src.doc.Workloads {
		for _, c := range wl.Cells {
			for _, row := range csvCell(src.doc, boots, &c) {
				if err := out.Write(row); err != nil {
					return err
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

type bootKey struct {
	lane   string
	number int
}

func csvCell(d *Document, boots map[bootKey]*results.Boot, c *Cell) [][]string {
	key := []string{d.Run.Name, c.Target, c.Kernel, c.Workload, c.Scenario}
	var rows [][]string
	add := func(parts ...[]string) {
		var row []string
		for _, p := range parts {
			row = append(row, p...)
		}
		for i := range row {
			row[i] = csvText(row[i])
		}
		rows = append(rows, row)
	}
	if len(c.Trials) == 0 {
		outcome := "not run"
		if c.NA != "" {
			outcome = string(results.NotApplicable)
		}
		add(key, []string{"", "", "", "", "false", outcome, c.Empty}, make([]string, 12))
		return rows
	}
	for i := range c.Trials {
		t := &c.Trials[i]
		trial := []string{strconv.Itoa(t.Block), strconv.Itoa(t.Boot), strconv.Itoa(t.Repeat), strconv.Itoa(t.Attempt),
			strconv.FormatBool(t.Counts), string(t.Outcome), t.Reason}
		found := []string{csvFindings(t.Findings)}
		boot := csvBoot(boots[bootKey{c.Target, t.Boot}])
		if len(t.Values) == 0 {
			add(key, trial, make([]string, 5), boot, make([]string, 2), found)
		}
		for _, v := range t.Values {
			add(key, trial, csvValue(v), boot, csvAverage(v), found)
		}
	}
	return rows
}

func csvValue(v workloads.Value) []string {
	value := ""
	if v.Missing == "" {
		value = strconv.FormatFloat(v.Value, 'g', -1, 64)
	}
	return []string{v.Name, v.Unit, string(v.Better), value, v.Missing}
}

// csvBoot is the evidence of the boot a trial ran in, empty when it was not judged.
func csvBoot(b *results.Boot) []string {
	if b == nil {
		return make([]string, 4)
	}
	r := b.Record
	return []string{r.BootID, r.Release, strings.TrimSpace(r.Scheduler.Name), strconv.FormatBool(r.Proven)}
}

// csvAverage is the count and the spread behind a printed average.
func csvAverage(v workloads.Value) []string {
	if v.N < 2 || v.Missing != "" {
		return make([]string, 2)
	}
	return []string{strconv.Itoa(v.N), strconv.FormatFloat(v.SD, 'g', -1, 64)}
}

func csvFindings(list []results.Finding) string {
	var parts []string
	for _, f := range list {
		hard := ""
		if f.Hard {
			hard = " (hard)"
		}
		parts = append(parts, f.Rule+hard+": "+f.Text)
	}
	return strings.Join(parts, "; ")
}

// csvText is a text that no spreadsheet takes for a formula and no terminal for
// a command.
func csvText(s string) string {
	s = clean(s)
	if s == "" || !strings.ContainsRune("=+-@", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
