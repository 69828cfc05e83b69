package iperf

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
)

// Total is the figure of a whole test.
type Total struct {
	Bytes      float64
	Seconds    float64 // from the first to the last byte, on the clock of the process that printed it
	Rate       float64 // bit/s
	Resolution float64 // step that Rate was printed with, bit/s; 0 = exact
	Streams    int
	UDP        *Datagrams // nil for TCP and for a sender
	Retr       *int64     // retransmits, nil when not printed
}

// ErrNoFinal means that the output holds no final line for what was asked.
var ErrNoFinal = errors.New("no final line")

// Total picks what was counted by role (Sender or Receiver) in direction (Up,
// Down, or "" for any). A row that does not name its role or direction counts
// as any. Sums and streams are never mixed: streams are added, and a printed
// sum is taken only where it agrees with them or they are not printed. An error
// that is not ErrNoFinal means that the figures cannot be believed.
func (r *Report) Total(role, direction string) (Total, error) {
	streams := match(r.Streams, role, direction)
	sums := match(r.Sums, role, direction)
	var rows []Row
	switch {
	case len(sums) == 1 && sums[0].Role != "" && r.Tool == Iperf3:
		rows = sums // for UDP its streams are the sender's
	case len(streams) > 0:
		rows = streams
		if len(sums) == 1 && len(streams) > 1 && agrees(sums[0], streams) {
			rows = sums
		}
	case len(sums) > 0:
		rows = sums
	default:
		return Total{}, ErrNoFinal
	}
	for _, row := range rows {
		if err := row.Check(); err != nil {
			return Total{}, err
		}
		if row.End <= row.Start {
			return Total{}, fmt.Errorf("the final line covers no time: %q", row.Line)
		}
	}
	if line := twice(rows); line != "" {
		return Total{}, fmt.Errorf("one connection has two final lines, as when both directions run on one machine: which stream went which way cannot be told: %q", line)
	}
	t := add(rows, max(1, len(streams)))
	if all := add(streams, 0); t.UDP == nil { // a printed sum may leave it out
		t.UDP = all.UDP
	}
	return t, nil
}

// twice is the final line of a connection that has one already: both ends of it
// are in the output, and what went through it must not be added to itself.
func twice(rows []Row) string {
	type ends struct{ from, to netip.AddrPort }
	seen := map[ends]bool{}
	for _, row := range rows {
		e := ends{row.From, row.To}
		if row.Sum || e.from.Port() == 0 || e.to.Port() == 0 {
			continue // a sum names no port
		}
		if seen[e] {
			return row.Line
		}
		seen[e] = true
	}
	return ""
}

// Reported is what the server told a UDP client that it had received.
func (r *Report) Reported() (Total, error) {
	if len(r.ServerReport) == 0 {
		return Total{}, ErrNoFinal
	}
	for _, row := range r.ServerReport {
		if err := row.Check(); err != nil {
			return Total{}, err
		}
	}
	return add(r.ServerReport, len(r.ServerReport)), nil
}

func match(rows []Row, role, direction string) []Row {
	var out []Row
	for _, row := range rows {
		if (row.Role == role || row.Role == "") &&
			(direction == "" || row.Direction == direction || row.Direction == "") {
			out = append(out, row)
		}
	}
	return out
}

// agrees says whether a printed sum is the sum of these streams, within steps.
func agrees(sum Row, streams []Row) bool {
	total, steps := 0.0, sum.BytesStep
	for _, s := range streams {
		total += s.Bytes
		steps += s.BytesStep
	}
	return math.Abs(total-sum.Bytes) <= steps+slack*total
}

func add(rows []Row, streams int) Total {
	t := Total{Streams: streams}
	for _, row := range rows {
		t.Bytes += row.Bytes
		t.Rate += row.Rate
		t.Resolution += row.RateStep
		t.Seconds = max(t.Seconds, row.End-row.Start)
		if row.Retransmits != nil {
			if t.Retr == nil {
				t.Retr = new(int64)
			}
			*t.Retr += *row.Retransmits
		}
		if d := row.UDP; d != nil {
			if t.UDP == nil {
				t.UDP = &Datagrams{}
			}
			t.UDP.Lost += d.Lost
			t.UDP.Total += d.Total
			t.UDP.OutOfOrder += d.OutOfOrder
			t.UDP.JitterMS = max(t.UDP.JitterMS, d.JitterMS) // the worst stream
		}
	}
	return t
}

// Stalls counts the intervals in which a stream (or the sum, where there is
// one) moved nothing, and all of them.
func (r *Report) Stalls() (zero, all int) {
	for _, row := range r.Intervals {
		if row.Omitted || row.End-row.Start < 0.5 { // the tail of a drain
			continue
		}
		all++
		if row.Bytes == 0 {
			zero++
		}
	}
	return zero, all
}

// String is a line for notes: "iperf3 3.12".
func (r *Report) String() string {
	switch {
	case r.Tool == "":
		return "unrecognised output"
	case r.Version == "":
		return r.Tool
	default:
		return fmt.Sprintf("%s %s", r.Tool, r.Version)
	}
}
