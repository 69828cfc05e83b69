package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// table is rows of text cells under a head; the first labels columns are to the
// left and are repeated where a table too wide is printed in parts.
type table struct {
	labels int
	head   []string
	rows   [][]string // a nil row is an empty line
	left   []int      // further columns that are text
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// lines renders the table within width columns.
func (t *table) lines(width int) []string {
	head := cleanAll(t.head)
	rows := make([][]string, len(t.rows))
	for i, r := range t.rows {
		rows[i] = cleanAll(r)
	}
	w := make([]int, len(head))
	for _, r := range append([][]string{head}, rows...) {
		for i, c := range r {
			w[i] = max(w[i], columns(c))
		}
	}
	for i := range t.labels { // long names must leave room for figures
		w[i] = min(w[i], max(12, width*[]int{4, 2}[min(i, 1)]/10))
	}
	room := width
	for i := range t.labels {
		room -= w[i] + 2
	}
	for i := t.labels; i < len(w); i++ {
		w[i] = min(w[i], max(room, 8))
	}
	var out []string
	for from := t.labels; from < len(head) || from == t.labels; {
		to := t.fit(w, from, width)
		if from > t.labels {
			out = append(out, "")
		}
		out = append(out, t.line(head, w, from, to))
		for _, r := range rows {
			out = append(out, t.line(r, w, from, to))
		}
		from = to
		if len(head) == t.labels {
			break
		}
	}
	return out
}

// fit says up to which column a part of the table goes; always at least one.
func (t *table) fit(w []int, from, width int) int {
	used := 0
	for i := range t.labels {
		used += w[i] + 2
	}
	to := from
	for to < len(w) && (to == from || used+w[to] <= width) {
		used += w[to] + 2
		to++
	}
	return to
}

func (t *table) line(cells []string, w []int, from, to int) string {
	var b strings.Builder
	put := func(i int, right bool) {
		c := ""
		if i < len(cells) {
			c = cut(cells[i], w[i])
		}
		pad := strings.Repeat(" ", w[i]-columns(c))
		if right {
			b.WriteString(pad + c + "  ")
		} else {
			b.WriteString(c + pad + "  ")
		}
	}
	for i := range t.labels {
		put(i, false)
	}
	for i := from; i < to; i++ {
		put(i, !slices.Contains(t.left, i))
	}
	return strings.TrimRight(b.String(), " ")
}

func cleanAll(cells []string) []string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = clean(c)
	}
	return out
}

// footnotes numbers reasons; the same reason has one number.
type footnotes struct{ list []string }

func (f *footnotes) mark(reason string) string {
	i := slices.Index(f.list, reason)
	if i < 0 {
		i = len(f.list)
		f.list = append(f.list, reason)
	}
	return "[" + strconv.Itoa(i+1) + "]"
}

func (f *footnotes) lines(width int) []string {
	var out []string
	for i, r := range f.list {
		out = append(out, wrap("["+strconv.Itoa(i+1)+"] "+clean(r), width, "    ")...)
	}
	return out
}

// fig prints a value with six significant digits, and an exponent only where it
// would be a row of zeros.
func fig(v float64) string { return digitsOf(v, 6) }

func digitsOf(v float64, digits int) string {
	x := rounded(v, digits)
	if a := math.Abs(x); a != 0 && (a < 1e-6 || a >= 1e15) {
		return strconv.FormatFloat(v, 'g', digits, 64)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// brief prints an end of a range: five significant digits, and all of those
// before the point.
func brief(v float64) string {
	if a := math.Abs(v); a >= 1e5 && a < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return digitsOf(v, 5)
}

// rounded to so many significant digits.
func rounded(v float64, digits int) float64 {
	x, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	if err != nil {
		return v
	}
	return x
}
