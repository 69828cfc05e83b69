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
// repeat. The first row is an average since boot unless the tool was told
// otherwise (-y), and is marked. Text without rows gives a warning that ends in
// its last line. The error is the reader's.
func ReadText(r io.Reader) (rows []Row, warns []string, err error) {
	var head []string
	var w warnings
	last := ""
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := strings.TrimSpace(in.Text())
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		last = line
		switch {
		case line == toyboxTop:
			w.add("this is toybox's vmstat: its si, so, bi and bo are too large by the page size, and left out")
		case isHeader(f):
			head = f
		case head != nil:
			row, ok := fromFields(head, f)
			if !ok {
				break
			}
			if len(w) > 0 && strings.HasPrefix(w[0], "this is toybox") {
				row.dropPaging()
			}
			row.SinceBoot = len(rows) == 0
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 && in.Err() == nil {
		w.add(fmt.Sprintf("vmstat printed no samples; its last line: %q", last))
	}
	return rows, w, in.Err()
}

func isHeader(f []string) bool {
	return len(f) > 4 && f[0] == "r" && slices.Contains(f, "cs") && slices.Contains(f, "us")
}

// fromFields reads a row; ok is false when the line is none.
func fromFields(head, f []string) (Row, bool) {
	var r Row
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
