package glance

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/store"
)

const (
	width     = 80 // of the screen, in characters
	narrowest = 8  // of a target's name
	mostNA    = 3  // reasons for n/a
)

// WriteText prints the glance for a person, at most 80 characters wide where no
// word or command is longer.
func (g Glance) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	g.table(w)
	for i, s := range g.na {
		if i == mostNA {
			wrap(w, "  ", "  ", fmt.Sprintf("%d more reasons for n/a: plan --order lists every cell", len(g.na)-i))
			break
		}
		wrap(w, "  ", "  ", s)
	}
	for _, s := range g.warning {
		wrap(w, "  ", "  ", s)
	}
	g.summary(w)
	return w.Flush()
}

// column is one of the table's; numbers stand at its right.
type column struct {
	head  string
	right bool
	text  func(Lane) string
}

func (g Glance) columns() []column {
	number := func(n func(Lane) int) func(Lane) string { return func(l Lane) string { return fmt.Sprint(n(l)) } }
	cols := []column{
		{"TARGET", false, func(l Lane) string { return live.Safe(l.Target) }},
		{"KERNELS", true, number(func(l Lane) int { return len(l.Kernels) })},
		{"BOOTS", true, number(func(l Lane) int { return l.Boots })},
		{"TRIALS", true, number(func(l Lane) int { return l.Trials })},
		{"ABOUT", true, func(l Lane) string { return plan.Round(l.Estimate) }},
		{"BY", false, func(l Lane) string { return l.From.String() }},
	}
	if g.until {
		cols = append(cols, column{"FITS", false, func(l Lane) string {
			if l.Fit == nil {
				return "-"
			}
			return fmt.Sprintf("%d/%d", l.Fit.Blocks, l.Fit.Of)
		}})
	}
	return append(cols,
		column{"BACK BY", false, func(l Lane) string { return l.Recovery }},
		column{"REHEARSED", false, g.rehearsed},
	)
}

func (g Glance) rehearsed(l Lane) string {
	switch {
	case l.virtual:
		return "-"
	case l.Rehearsed == nil:
		return "never"
	case l.RehearsalFailed:
		return "FAILED"
	}
	return ago(g.now, *l.Rehearsed)
}

func (g Glance) table(w io.Writer) {
	cols := g.columns()
	rows := make([][]string, 0, len(g.Lanes)+1)
	head := make([]string, len(cols))
	for i, c := range cols {
		head[i] = c.head
	}
	rows = append(rows, head)
	for _, l := range g.Lanes {
		row := make([]string, len(cols))
		for i, c := range cols {
			row[i] = c.text(l)
		}
		if l.Held != "" {
			row[len(row)-1] = "IN USE"
		}
		rows = append(rows, row)
	}
	wide := make([]int, len(cols))
	rest := 0
	for i := range cols {
		for _, r := range rows {
			wide[i] = max(wide[i], utf8.RuneCountInString(r[i]))
		}
		if i > 0 {
			rest += 2 + wide[i]
		}
	}
	wide[0] = min(wide[0], max(narrowest, width-rest))
	for _, r := range rows {
		line := ""
		for i, c := range cols {
			if i > 0 {
				line += "  "
			}
			line += pad(cut(r[i], wide[i]), wide[i], c.right)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

// cut shortens a name to n characters: names that are alike differ at their end.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n/2]) + "…" + string(r[len(r)-(n-1-n/2):])
}

func pad(s string, n int, right bool) string {
	fill := strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
	if right {
		return fill + s
	}
	return s + fill
}

// summary ends the glance: how long, until when, and what to look at.
func (g Glance) summary(w io.Writer) {
	d := g.Disk
	free := "free space n/a (the file system does not say)"
	if d.Free >= 0 {
		free = store.Bytes(d.Free) + " free"
	}
	told := "nobody is told (no notify block)"
	if len(g.Notify) > 0 {
		told = "told: " + strings.Join(g.Notify, ", ")
	}
	wrap(w, "", "  ", fmt.Sprintf("disk: about %s, by %s; %s", store.Bytes(d.Need+d.Images), d.From, free))
	wrap(w, "", "  ", told)
	all := fmt.Sprintf("all in all %s, over at %s should it begin now", g.takes, plan.Clock(g.over, g.now))
	switch n := len(g.Things); n {
	case 0:
		if !g.begun { // then the preflight has the word
			all += "; nothing stands against it"
		}
		wrap(w, "", "  ", all)
		return
	case 1:
		wrap(w, "", "  ", all+"; 1 thing to look at:")
	default:
		wrap(w, "", "  ", fmt.Sprintf("%s; %d things to look at:", all, n))
	}
	for i, t := range g.Things {
		mark := fmt.Sprintf("%3d ", i+1)
		wrap(w, mark, "    ", who(t.Targets)+t.What)
		if strings.HasPrefix(t.Do, "kernsweep ") { // to be pasted, so it stays in one line
			fmt.Fprintf(w, "    -> %s\n", live.Safe(t.Do))
		} else {
			wrap(w, "    -> ", "       ", t.Do)
		}
	}
}

// who is "box, desk: ".
func who(targets []string) string {
	const most = 4 // by name
	switch n := len(targets); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf("%s and %d more: ", strings.Join(targets[:most-1], ", "), n-most+1)
	}
	return strings.Join(targets, ", ") + ": "
}

// wrap prints a text in lines of the screen's width; a longer word stands alone.
func wrap(w io.Writer, first, next, text string) {
	line, n := first, 0
	for _, word := range strings.Fields(live.Safe(text)) {
		switch {
		case n == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			fmt.Fprintln(w, line)
			line = next + word
		default:
			line += " " + word
		}
		n++
	}
	fmt.Fprintln(w, line)
}
