package iperf

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// rowPattern matches a line of figures with any run of blanks: archived mail
// collapses them. Groups: id, role tag, start, end, amount, unit, rate, unit, rest.
var rowPattern = regexp.MustCompile(`^\[ *(\*?\d+|\*?[A-Z]+\d*(?:-\d+)?)\](?:\[([TR]X-[CS])\])?\s*` +
	`(\d+\.\d+)\s*-\s*(\d+\.\d+)\s+sec\s+(\S+)\s+([KMGTPE]?)Bytes\s+(\S+)\s+([KMGTPE]?)(bits|Bytes)/sec(.*)$`)

// rowLike matches what begins like a line of figures, readable or not.
var rowLike = regexp.MustCompile(`^\[ *(\*?\d+|\*?[A-Z]+\d*(?:-\d+)?)\](?:\[[TR]X-[CS]\])?\s*\d+\.\d+\s*-`)

var udpPattern = regexp.MustCompile(`^\s*(-?[\d.]+) ms\s+(-?\d+)/\s*(-?\d+)\s+\(([^)]*)%\)`)

var (
	retr3Pattern = regexp.MustCompile(`^\s*(\d+)\s`)            // iperf3: Retr
	retr2Pattern = regexp.MustCompile(`^\s*\d+/\d+\s+(\d+)\s+`) // iperf2 -e: Write/Err Rtry
)

// power is the exponent of a unit prefix.
func power(prefix string) float64 {
	if prefix == "" {
		return 0
	}
	return float64(strings.Index("KMGTPE", prefix) + 1)
}

// step is the distance between two neighbours of a printed number.
func step(printed string) float64 {
	_, frac, _ := strings.Cut(printed, ".")
	return math.Pow(10, -float64(len(frac)))
}

// parseRow reads a line of figures; ok is false when it is none, and err says
// that it is one that cannot be.
func parseRow(line string) (row Row, rest string, ok bool, err error) {
	m := rowPattern.FindStringSubmatch(line)
	if m == nil {
		return row, "", false, nil
	}
	row = Row{Line: line, ID: m[1], TimeStep: step(m[4])}
	row.Sum = strings.Contains(row.ID, "SUM") || strings.HasPrefix(row.ID, "FD") // FD: both directions
	num := make([]float64, 0, 4)
	for _, i := range []int{3, 4, 5, 7} {
		f, perr := strconv.ParseFloat(m[i], 64)
		if perr != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return row, "", true, fmt.Errorf("%q is not a number in the line %q", m[i], line)
		}
		num = append(num, f)
	}
	unit := math.Pow(1024, power(m[6]))
	rate := math.Pow(1000, power(m[8]))
	if m[9] == "Bytes" {
		rate = 8 * math.Pow(1024, power(m[8]))
	}
	row.Start, row.End = num[0], num[1]
	row.Bytes, row.BytesStep = num[2]*unit, step(m[5])*unit
	row.Rate, row.RateStep = num[3]*rate, step(m[7])*rate
	switch m[2] {
	case "TX-C", "RX-S":
		row.Direction = Up
	case "RX-C", "TX-S":
		row.Direction = Down
	}
	return row, m[10], true, nil
}

// parseDatagrams reads jitter and loss after the rate of a UDP line.
func parseDatagrams(rest string) *Datagrams {
	m := udpPattern.FindStringSubmatch(rest)
	if m == nil {
		return nil
	}
	jitter, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return nil
	}
	lost, err1 := strconv.ParseInt(m[2], 10, 64)
	total, err2 := strconv.ParseInt(m[3], 10, 64)
	if err1 != nil || err2 != nil {
		return nil
	}
	return &Datagrams{JitterMS: jitter, Lost: lost, Total: total}
}

// slack allows for what a tool computes from a clock it does not print.
const slack = 0.002

// credible is the highest rate believed, bit/s: iperf 2.1.8 against a 2.0.5
// server reports 55 Tbit/s over UDP.
const credible = 10e12

// Check says whether bytes, seconds and rate of r agree within the steps they
// were printed with. The error quotes the line.
func (r Row) Check() error {
	what := r.Line
	if what == "" {
		what = fmt.Sprintf("%.0f bytes in %.3f s at %.0f bit/s", r.Bytes, r.End-r.Start, r.Rate)
	}
	seconds := r.End - r.Start
	switch {
	case r.Bytes < 0 || r.Rate < 0:
		return fmt.Errorf("a negative figure in %q", what)
	case seconds < 0 || seconds == 0 && r.TimeStep == 0:
		return fmt.Errorf("an empty interval in %q", what)
	case r.Rate > credible:
		return fmt.Errorf("a rate that no link has in %q", what)
	}
	if d := r.UDP; d != nil && (d.Lost < 0 || d.JitterMS < 0 || d.Total <= 0 && r.Bytes > 0 || d.Lost > d.Total) {
		return fmt.Errorf("impossible datagram counts in %q", what)
	}
	low := (r.Bytes - r.BytesStep) * 8 / (seconds + r.TimeStep) * (1 - slack)
	high := math.Inf(1)
	if short := seconds - r.TimeStep; short > 0 {
		high = (r.Bytes + r.BytesStep) * 8 / short * (1 + slack)
	}
	if r.Rate+r.RateStep < low || r.Rate-r.RateStep > high {
		return fmt.Errorf("the figures contradict each other in %q: %.4g bytes in %.4g s are %.4g bit/s",
			what, r.Bytes, seconds, r.Bytes*8/seconds)
	}
	return nil
}
