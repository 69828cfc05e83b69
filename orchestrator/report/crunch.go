package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kernsweep/workloads"
)

// crunchTable is the table of user and wall seconds: one per task, rows are
// kernels, columns are scenarios.
func crunchTable(v *view) {
	var notes footnotes
	for i, task := range crunchTasks(v) {
		tab := table{labels: 1, head: append([]string{task + " user/wall s"}, v.scenarios...)}
		for _, k := range v.kernels {
			crunchRows(v, &tab, &notes, k, task)
		}
		if i > 0 {
			v.out.blank()
		}
		v.out.table(&tab, nil, v.width)
	}
	v.out.add(notes.lines(v.width)...)
}

// crunchPart splits "LTMM_user" or "LTMM.wall" into task and quantity.
func crunchPart(metric string) (task, quantity string) {
	for _, q := range []string{"user", "wall"} {
		if rest, ok := strings.CutSuffix(strings.ToLower(metric), q); ok && len(rest) > 1 {
			return strings.TrimRight(metric[:len(rest)], "._-/ "), q
		}
	}
	return "", ""
}

func crunchTasks(v *view) []string {
	var tasks []string
	for _, c := range v.cells {
		for _, f := range c.Figures {
			if task, _ := crunchPart(f.Name); task != "" {
				tasks = addNew(tasks, task)
				v.shown[f.Name] = true
			}
		}
	}
	return tasks
}

func crunchRows(v *view, tab *table, notes *footnotes, kernel, task string) {
	medians, user, wall, n := []string{kernel}, []string{"  user min..max"}, []string{"  wall min..max"}, []string{"  n"}
	any := false
	raw := v.crunchRaw(kernel, task, notes)
	for _, sc := range v.scenarios {
		c := v.cell(kernel, sc)
		if c == nil {
			medians, user, wall, n = append(medians, ""), append(user, ""), append(wall, ""), append(n, "")
			continue
		}
		fu, fw := c.figure(crunchIs(task, "user")), c.figure(crunchIs(task, "wall"))
		if c.Empty != "" || fu == nil && fw == nil || none(fu) && none(fw) {
			medians = append(medians, crunchNA(c, fu, notes))
			user, wall, n = append(user, ""), append(wall, ""), append(n, "")
			continue
		}
		any = true
		if len(raw) > 0 && !none(fu) && !none(fw) { // what is missing is seen below
			medians = append(medians, fig(fu.Median.Value)+"/"+fig(fw.Median.Value)+noDuration(fw.Metric, task, notes))
			continue
		}
		medians = append(medians, crunchMedian(c, fu, notes)+"/"+crunchMedian(c, fw, notes))
		user, wall, n = append(user, crunchSpan(fu)), append(wall, crunchSpan(fw)), append(n, crunchN(fu, fw))
	}
	if len(raw) == 1 { // nothing to take a median of
		for i, s := range raw[0][1:] {
			if s != "" {
				medians[i+1] = s
			}
		}
	}
	tab.rows = append(tab.rows, medians)
	if len(raw) > 0 {
		if len(raw) > 1 {
			tab.rows = append(tab.rows, raw...)
		}
		return
	}
	for _, spread := range [][]string{user, wall} {
		if strings.Join(spread[1:], "") != "" {
			tab.rows = append(tab.rows, spread)
		}
	}
	if any {
		tab.rows = append(tab.rows, n)
	}
}

// mostRaw is how many repeats of an imported cell are printed one by one.
const mostRaw = 6

// crunchRaw has a row per repeat of an imported run, every figure with the digits
// it was published with; nil for other runs, and where there are too many.
func (v *view) crunchRaw(kernel, task string, notes *footnotes) [][]string {
	most := 0
	for _, sc := range v.scenarios {
		if c := v.cell(kernel, sc); c != nil {
			for _, t := range c.Trials {
				most = max(most, t.Repeat)
			}
		}
	}
	if v.src.doc.Run.Imported == nil || most > mostRaw {
		return nil
	}
	var rows [][]string
	for n := 1; n <= most; n++ {
		row := []string{fmt.Sprintf("  repeat %d", n)}
		for _, sc := range v.scenarios {
			text := ""
			if c := v.cell(kernel, sc); c != nil {
				for _, t := range c.Trials {
					if t.Repeat == n && t.Counts {
						text = crunchPair(&t, task, notes)
					}
				}
			}
			row = append(row, text)
		}
		if strings.Join(row[1:], "") != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// crunchPair is user/wall of a task in one trial, "" when it has neither.
func crunchPair(t *Trial, task string, notes *footnotes) string {
	parts, some := []string{"na", "na"}, false
	for i, quantity := range []string{"user", "wall"} {
		for _, x := range t.Values {
			if !crunchIs(task, quantity)(x.Name) || x.Missing != "" {
				continue
			}
			parts[i], some = asPrinted(x), true
			if quantity == "wall" {
				parts[i] += noDuration(x.Metric, task, notes)
			}
		}
	}
	if !some {
		return ""
	}
	return strings.Join(parts, "/")
}

// noDuration marks a sum of the wall times of tasks that ran at once.
func noDuration(m workloads.Metric, task string, notes *footnotes) string {
	if task != "total" || m.Better != workloads.Informative {
		return ""
	}
	return notes.mark("the tasks ran at once: the sum of their wall times is no duration (makespan is)")
}

// asPrinted prints a value as far as it was printed.
func asPrinted(x workloads.Value) string {
	if x.Resolution <= 0 || x.Resolution >= 1 {
		return fig(x.Value)
	}
	return strconv.FormatFloat(x.Value, 'f', int(math.Ceil(-math.Log10(x.Resolution)-1e-9)), 64)
}

func crunchIs(task, quantity string) func(string) bool {
	return func(name string) bool {
		t, q := crunchPart(name)
		return t == task && q == quantity
	}
}

func none(f *Figure) bool { return f == nil || f.Boots == 0 }

// crunchNA is "na", as that table's readers know it, with its reason below.
func crunchNA(c *Cell, f *Figure, notes *footnotes) string {
	if c.DidNotBoot != nil && c.NA == "" {
		return na(c, f, notes)
	}
	return "na" + strings.TrimPrefix(na(c, f, notes), "n/a")
}

func crunchMedian(c *Cell, f *Figure, notes *footnotes) string {
	if f == nil {
		return "-" // the scenario has no such figure: walls of parallel tasks have no sum
	}
	if none(f) {
		return crunchNA(c, f, notes)
	}
	s := fig(f.Median.Value)
	if len(f.Missing) > 0 {
		s += notes.mark(missingText(f))
	}
	return s
}

func crunchSpan(f *Figure) string {
	if none(f) {
		return ""
	}
	return f.spread()
}

func crunchN(user, wall *Figure) string {
	if none(user) {
		return wall.n()
	}
	return user.n()
}
