// Package vmstat turns the raw counters an agent sampled into the columns that
// vmstat prints, keeps them as CSV, prints them in the familiar layout, and
// reads what other vmstat programs printed. A column that could not be had is
// missing, never 0.
package vmstat

import "strings"

// Column of a row, in the order vmstat prints them.
type Column int

// The columns. R and B are counts, Swpd to Cache kB, Si to Bo kB/s, In and Cs
// events per second, the rest percent of all CPUs' time.
const (
	R Column = iota
	B
	Swpd
	Free
	Buff
	Cache
	Si
	So
	Bi
	Bo
	In
	Cs
	Us
	Sy
	Id
	Wa
	St
	Gu
	columns // their number
)

// String is the name in vmstat's header.
func (c Column) String() string {
	return [columns]string{"r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo",
		"in", "cs", "us", "sy", "id", "wa", "st", "gu"}[c]
}

func columnOf(name string) (Column, bool) {
	for c := range columns {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// Row is one line of vmstat: an interval and the state at its end.
type Row struct {
	MonoNS  int64   // the target's CLOCK_MONOTONIC at the end; 0 in rows read from text
	Seconds float64 // length of the interval; 0 in rows read from text
	// SinceBoot marks the first line of another tool, an average since boot.
	// Summarise leaves it out.
	SinceBoot bool
	Note      string // why columns are missing or were corrected; "" = nothing to say

	value [columns]float64
	has   [columns]bool
}

// Get returns a column; ok is false when it is missing.
func (r Row) Get(c Column) (v float64, ok bool) { return r.value[c], r.has[c] }

// Set gives a column a value.
func (r *Row) Set(c Column, v float64) { r.value[c], r.has[c] = v, true }

func (r *Row) note(s string) {
	s = strings.Map(func(c rune) rune {
		if c == '\n' || c == '\r' {
			return ' '
		}
		return c
	}, s)
	if r.Note != "" {
		r.Note += "; "
	}
	r.Note += s
}

// Summary is the mean over the rows, weighted by their length. A column that no
// row has is named in Missing, and its field here means nothing.
type Summary struct {
	Samples    int     // rows that count
	Seconds    float64 // their length together
	Switches   float64 // context switches per second
	Interrupts float64 // per second
	// Shares of CPU time, percent. System holds interrupts too.
	User, System, Idle, Wait, Steal float64
	Missing                         []string // names of columns: "cs", "st"
}

// Summarise averages rows.
func Summarise(rows []Row) Summary {
	var s Summary
	for _, r := range rows {
		if !r.SinceBoot {
			s.Samples++
			s.Seconds += r.Seconds
		}
	}
	for _, f := range []struct {
		c  Column
		to *float64
	}{{Cs, &s.Switches}, {In, &s.Interrupts}, {Us, &s.User}, {Sy, &s.System}, {Id, &s.Idle}, {Wa, &s.Wait}, {St, &s.Steal}} {
		v, ok := mean(rows, f.c)
		if !ok {
			s.Missing = append(s.Missing, f.c.String())
			continue
		}
		*f.to = v
	}
	return s
}

func mean(rows []Row, c Column) (float64, bool) {
	var sum, weight float64
	for _, r := range rows {
		v, ok := r.Get(c)
		if !ok || r.SinceBoot {
			continue
		}
		w := r.Seconds
		if w <= 0 {
			w = 1 // text has no lengths: its rows are of equal ones
		}
		sum += v * w
		weight += w
	}
	if weight == 0 {
		return 0, false
	}
	return sum / weight, true
}
