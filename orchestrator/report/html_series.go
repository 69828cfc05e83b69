package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"kernsweep/orchestrator/report/svg"
)

// vmSeries is a vmstat.csv in stretches of equal length. Rows are taken one by
// one, since those of a long trial together need more room than there is.
type vmSeries struct {
	bins   int // most stretches that are wanted
	width  float64
	length float64 // seconds
	rows   int
	cells  [][]stretch // by column of panelColumns, then by stretch
}

// stretch is what a stretch, or a whole series, holds.
type stretch struct {
	n             int
	sum, min, max float64
}

func (s *stretch) add(v float64) {
	if s.n == 0 || v < s.min {
		s.min = v
	}
	if s.n == 0 || v > s.max {
		s.max = v
	}
	s.n++
	s.sum += v
}

func (s *stretch) join(o stretch) {
	if o.n == 0 {
		return
	}
	if s.n == 0 {
		*s = o
		return
	}
	s.n, s.sum, s.min, s.max = s.n+o.n, s.sum+o.sum, math.Min(s.min, o.min), math.Max(s.max, o.max)
}

func (s *stretch) mean() float64 { return s.sum / float64(s.n) }

// longestSeries bounds the time that damaged files claim, in seconds.
const longestSeries = 1e9

// readSeries reads a vmstat.csv by the names in its head, up to the first line
// that is damaged: the error is about the rest.
func readSeries(r io.Reader, bins int) (*vmSeries, error) {
	s := &vmSeries{bins: bins, cells: make([][]stretch, len(panelColumns()))}
	in := csv.NewReader(r)
	in.ReuseRecord = true
	head, err := in.Read()
	if err != nil {
		if err == io.EOF {
			err = fmt.Errorf("the file is empty")
		}
		return s, err
	}
	seconds := slices.Index(head, "seconds")
	at := make([]int, len(panelColumns()))
	for i, c := range panelColumns() {
		at[i] = slices.Index(head, c.column)
	}
	for {
		rec, err := in.Read()
		if err == io.EOF {
			return s, nil
		}
		if err != nil {
			return s, err
		}
		s.row(rec, at, lasted(rec, seconds))
	}
}

// lasted is how long a row's interval was, 1 where it does not say.
func lasted(rec []string, column int) float64 {
	if column >= 0 {
		if v, err := strconv.ParseFloat(rec[column], 64); err == nil && v > 0 && v <= longestSeries {
			return v
		}
	}
	return 1
}

func (s *vmSeries) row(rec []string, at []int, seconds float64) {
	if s.length+seconds > longestSeries {
		return
	}
	if s.width == 0 {
		s.width = seconds
	}
	middle := s.length + seconds/2
	s.length += seconds
	s.rows++
	for int(middle/s.width) >= 2*s.bins {
		s.halve()
	}
	k := int(middle / s.width)
	for i, c := range at {
		if c < 0 {
			continue
		}
		v, err := strconv.ParseFloat(rec[c], 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue // n/a: a gap
		}
		for len(s.cells[i]) <= k {
			s.cells[i] = append(s.cells[i], stretch{})
		}
		s.cells[i][k].add(v)
	}
}

// halve joins every two stretches.
func (s *vmSeries) halve() {
	s.width *= 2
	for i, list := range s.cells {
		for k := range list {
			if k%2 == 0 {
				list[k/2] = list[k]
			} else {
				list[k/2].join(list[k])
			}
		}
		s.cells[i] = list[:(len(list)+1)/2]
	}
}

// points of a column, at most bins of them, and what they hold together.
func (s *vmSeries) points(column int) ([]svg.Point, stretch) {
	for s.width > 0 && s.length/s.width > float64(s.bins) {
		s.halve()
	}
	var all stretch
	var out []svg.Point
	for k, x := range s.cells[column] {
		p := svg.Point{At: (float64(k) + 0.5) * s.width, Mean: math.NaN()}
		if x.n > 0 {
			p.Mean, p.Min, p.Max = x.mean(), x.min, x.max
			all.join(x)
		}
		out = append(out, p)
	}
	return out, all
}
