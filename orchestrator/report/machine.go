package report

import (
	"slices"

	"kernsweep/workloads"
)

// machineTable is the table of imported vmstat text: a row per kernel and
// scenario, its columns those of vmstat, each the mean over the rows that count.
func machineTable(v *view) {
	var columns []string
	for _, c := range v.cells {
		for _, f := range c.Figures {
			if f.Better == workloads.Informative && !none(&f) && !slices.Contains(columns, f.Name) {
				columns = append(columns, f.Name)
			}
			v.shown[f.Name] = v.shown[f.Name] || f.Better == workloads.Informative
		}
	}
	tab := table{labels: 2, head: append(append([]string{"scenario", "kernel"}, columns...), "n")}
	var notes footnotes
	for _, c := range v.cells {
		row, n := []string{c.Scenario, c.Kernel}, ""
		if c.Empty != "" {
			tab.rows = append(tab.rows, append(row, na(c, nil, &notes)))
			continue
		}
		for _, name := range columns {
			f := c.figure(func(x string) bool { return x == name })
			if none(f) {
				row = append(row, na(c, f, &notes))
				continue
			}
			row = append(row, fig(f.Median.Value))
			if n == "" {
				n = f.n()
			}
		}
		tab.rows = append(tab.rows, append(row, n))
	}
	v.out.blank()
	v.out.say(v.width, "", "vmstat, means over its samples: in and cs per second, us to gu in percent, memory in kB, paging in kB/s; a column that it does not print is left out")
	v.out.table(&tab, &notes, v.width)
}
