package vmstat

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

var errNotNumber = errors.New("not a number")

func finite(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q: %w", s, errNotNumber)
	}
	return v, nil
}

func width(c Column) int {
	switch {
	case c <= B || c >= Us:
		return 2
	case c <= Cache:
		return 6
	case c == Bi || c == Bo:
		return 5
	default:
		return 4
	}
}

// WriteText prints rows in the layout that vmstat's users know. Of the columns
// that older ones lack (wa, st, gu) those that no row has are left out, as the
// older ones do; any other missing value is n/a.
func WriteText(w io.Writer, rows []Row) error {
	var shown [columns]bool // asked once: there may be a million rows
	var names []string
	cpu := -len(" cpu")
	for c := range columns {
		if shown[c] = c < Wa || slices.ContainsFunc(rows, func(r Row) bool { return r.has[c] }); shown[c] {
			names = append(names, fmt.Sprintf("%*s", width(c), c))
			if c >= Us {
				cpu += width(c) + 1
			}
		}
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "procs -----------memory---------- ---swap-- -----io---- -system-- %scpu%s\n",
		strings.Repeat("-", cpu-cpu/2), strings.Repeat("-", cpu/2))
	fmt.Fprintln(out, strings.Join(names, " "))
	var line []byte
	for i := range rows {
		line = line[:0]
		for c := range columns {
			if !shown[c] {
				continue
			}
			if len(line) > 0 {
				line = append(line, ' ')
			}
			text := cell(&rows[i], c)
			for range width(c) - len(text) {
				line = append(line, ' ')
			}
			line = append(line, text...)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

func cell(r *Row, c Column) string {
	v, ok := r.Get(c)
	if !ok {
		return absent
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}

// toyboxTop is the first header line of toybox, whose bi and bo are too large by
// its page size in kB, and si and so by its square.
const toyboxTop = "procs ------------memory------------ ---swap-- -----io---- --system- ----cpu----"

// ReadText reads the output of any vmstat by the names in its header, which may
// repeat, stand behind a time, and be broken into two lines like any row. The
// first row is an average since boot unless the tool was told otherwise (-y), and
// is marked. Warnings name what begins like a row and cannot be one. Text without
// rows gives a warning that ends in its last line. The error is the reader's.
func ReadText(r io.Reader) (rows []Row, warns []string, err error) {
	var t textReader
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for n := 1; in.Scan(); n++ {
		line := strings.TrimSpace(in.Text())
		if line != "" {
			t.last = line
			t.line(n, line, strings.Fields(line))
		}
	}
	t.broken(nil)
	if t.bad > 0 {
		t.warns.add(fmt.Sprintf("lines left out, since they begin like rows of vmstat and cannot be read: %d; the first: %s", t.bad, t.firstBad))
	}
	if t.odd > 0 {
		t.warns.add(fmt.Sprintf("rows in which the shares of the CPU do not add up to 100 %%: %d; the first: %s", t.odd, t.firstOdd))
	}
	if len(t.rows) == 0 && in.Err() == nil {
		t.warns.add(fmt.Sprintf("vmstat printed no samples; its last line: %q", t.last))
	}
	return t.rows, t.warns, in.Err()
}

// textReader keeps what the lines before say about the next one.
type textReader struct {
	rows     []Row
	warns    warnings
	head     []string
	lead     int  // fields before the header's first, as the time that ts(1) adds
	fresh    bool // the header is the line before
	toybox   bool
	part     []string // the beginning of a row that was broken
	partLine int
	last     string

	bad, odd           int
	firstBad, firstOdd string
}

func (t *textReader) line(n int, line string, f []string) {
	switch lead := headerAt(f); {
	case strings.HasSuffix(line, toyboxTop):
		t.toybox = true
		t.warns.add("this is toybox's vmstat: its si, so, bi and bo are too large by the page size, and left out")
	case lead >= 0:
		t.broken(nil)
		t.head, t.lead, t.fresh = f[lead:], lead, true
		return
	case t.fresh && names(f):
		t.head = append(t.head, f...)
	case t.head != nil:
		t.row(n, f)
	}
	t.fresh = false
}

// row takes a line below a header: a row, a part of one, or prose.
func (t *textReader) row(n int, f []string) {
	whole, first := f, n
	if len(f) > t.lead {
		whole = f[t.lead:]
	}
	if t.part != nil {
		if joined := append(t.part, f...); len(joined) == len(t.head) {
			whole, first, t.part = joined, t.partLine, nil
		} else {
			t.broken(nil)
		}
	}
	if _, err := finite(whole[0]); err != nil && whole[0] != absent {
		return
	}
	row, ok := fromFields(t.head, whole)
	switch {
	case !ok && len(whole) < len(t.head):
		t.part, t.partLine = slices.Clone(whole), n
	case !ok:
		t.part, t.partLine = nil, first
		t.broken(whole)
	default:
		t.take(first, row, whole)
	}
}

func (t *textReader) take(n int, row Row, f []string) {
	if t.toybox {
		row.dropPaging()
	}
	if sum := row.cpu(); sum != 0 && (sum < 90 || sum > 110) {
		if t.odd++; t.odd == 1 {
			t.firstOdd = fmt.Sprintf("line %d, %.60q", n, strings.Join(f, " "))
		}
	}
	row.SinceBoot = len(t.rows) == 0
	t.rows = append(t.rows, row)
}

// broken counts a line that cannot be read: f, or nil for the part that is left.
func (t *textReader) broken(f []string) {
	if f == nil {
		f = t.part
	}
	if t.part = nil; f == nil {
		return
	}
	if t.bad++; t.bad == 1 {
		t.firstBad = fmt.Sprintf("line %d, %.60q", t.partLine, strings.Join(f, " "))
	}
}

// headerAt is where in a line the names of the columns begin, -1 without.
func headerAt(f []string) int {
	i := slices.Index(f, "r")
	if i < 0 || i > 6 || len(f)-i <= 4 || f[i+1] != "b" || !slices.Contains(f, "cs") || !slices.Contains(f, "us") {
		return -1
	}
	return i
}

// names says that a line has nothing but names of CPU columns.
func names(f []string) bool {
	return !slices.ContainsFunc(f, func(s string) bool { c, ok := columnOf(s); return !ok || c < Us })
}

// cpu is the sum of the shares, 0 where one of the main ones is missing, %.
func (r *Row) cpu() (sum float64) {
	for c := Us; c <= Gu; c++ {
		v, ok := r.Get(c)
		if !ok && c <= Id {
			return 0
		}
		sum += v
	}
	return sum
}

// fromFields reads a row; ok is false when the line is none.
func fromFields(head, f []string) (Row, bool) {
	var r Row
	for i := len(head); i < len(f); i++ {
		if _, err := finite(f[i]); err == nil {
			return r, false // more numbers than columns; a time may follow
		}
	}
	for i, name := range head {
		c, known := columnOf(name)
		if !known {
			continue // inact, active, a time zone
		}
		if i >= len(f) {
			return r, false // cut off
		}
		if f[i] == absent {
			r.note(name + " is missing")
			continue
		}
		v, err := finite(f[i])
		if err != nil {
			return r, false
		}
		r.Set(c, v)
	}
	return r, true
}

func (r *Row) dropPaging() {
	for c := Si; c <= Bo; c++ {
		r.value[c], r.has[c] = 0, false
	}
}
