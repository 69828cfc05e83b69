package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kernsweep/orchestrator/stats"
	"kernsweep/workloads/vmstat"
)

// short prints with one decimal.
func short(v float64) string { return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") }

// activities is the vmstat summary per cell.
func activities(src *source, width int) section {
	s := section{title: "vmstat per cell (medians over n trials of each trial's mean)"}
	tab := table{labels: 2, head: []string{"workload", "target/kernel", "cs/s", "in/s", "us%", "sy%", "id%", "wa%", "st%", "n"}}
	var notes footnotes
	for _, w := range src.doc.Workloads {
		for _, c := range w.Cells {
			row := []string{c.Workload + "." + c.Scenario, c.Target + "/" + c.Kernel}
			if c.Activity == nil {
				why := c.Empty
				if why == "" {
					why = "no samples"
				}
				tab.rows = append(tab.rows, append(row, "n/a "+notes.mark(why)))
				continue
			}
			a := c.Activity
			for _, n := range []stats.Number{a.Switches, a.Interrupts, a.User, a.System, a.Idle, a.Wait, a.Steal} {
				text := "n/a"
				if n.OK() {
					text = short(n.Value)
				} else {
					text += notes.mark(n.Missing)
				}
				row = append(row, text)
			}
			tab.rows = append(tab.rows, append(row, fmt.Sprint(a.Trials)))
		}
	}
	if len(tab.rows) == 0 {
		s.add("nothing recorded")
		return s
	}
	s.table(&tab, &notes, width)
	return s
}

// samples prints vmstat of every counted trial in the familiar layout.
func samples(src *source, width int) section {
	s := section{title: "vmstat per trial"}
	for _, w := range src.doc.Workloads {
		for _, c := range w.Cells {
			for _, t := range c.Trials {
				if t.Counts {
					trialSamples(src, &s, &c, &t, width)
				}
			}
		}
	}
	if len(s.lines) == 0 {
		s.add("no trial counted")
	}
	return s
}

func trialSamples(src *source, s *section, c *Cell, t *Trial, width int) {
	files, err := filepath.Glob(filepath.Join(src.run.Dir(), filepath.FromSlash(t.Dir), "*vmstat.csv"))
	if err != nil || len(files) == 0 {
		s.blank()
		s.say(width, "  ", "%s, boot %d, repeat %d: n/a (no vmstat.csv in %s)", c.Cell, t.Boot, t.Repeat, t.Dir)
		return
	}
	for _, f := range files {
		side := ""
		if p := strings.TrimSuffix(filepath.Base(f), "vmstat.csv"); p != "" {
			side = " (" + strings.TrimRight(p, "-.") + ")"
		}
		s.blank()
		s.say(width, "  ", "%s, boot %d, repeat %d%s", c.Cell, t.Boot, t.Repeat, side)
		text, err := familiar(f)
		if err != nil {
			s.say(width, "  ", "  n/a (%v)", err)
		}
		for line := range strings.Lines(text) {
			s.add(cut(clean(strings.TrimRight(line, "\n")), width))
		}
	}
}

// familiar renders the rows that could be read, beside the error of the rest.
func familiar(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	rows, err := vmstat.ReadCSV(bytes.NewReader(b))
	if len(rows) == 0 {
		if err == nil {
			err = fmt.Errorf("no samples in %s", filepath.Base(path))
		}
		return "", err
	}
	var out bytes.Buffer
	if wErr := vmstat.WriteText(&out, rows); wErr != nil {
		return "", wErr
	}
	return out.String(), err
}
