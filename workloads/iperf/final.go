package iperf

import "strings"

// sort divides the rows of a text into final lines and intervals, and gives
// each its role and direction.
func (t *textReader) sort() {
	r := t.r
	for i := range t.rows {
		t.attribute(&t.rows[i])
	}
	final := t.finals()
	for i, row := range t.rows {
		switch {
		case !final[i]:
			r.Intervals = append(r.Intervals, row)
		case r.Tool == Iperf3 && r.Process == Server && t.unknown(row):
			r.Notes = append(r.Notes, "this end does not know what the other counted: "+row.Line)
		case r.Tool == Iperf3 && row.Role == "" && row.UDP != nil:
			t.oldUDP(row)
		case row.Sum:
			r.Sums = append(r.Sums, row)
		default:
			r.Streams = append(r.Streams, row)
		}
	}
	if len(t.rows) > 0 && r.Tool == "" {
		r.Tool = Iperf2
	}
}

// unknown says that an iperf3 server of 3.1 to 3.6 prints 0 bytes for what only
// the client knows.
func (t *textReader) unknown(row Row) bool {
	if row.Bytes > 0 {
		return false
	}
	if row.Role == "" {
		return row.UDP != nil && row.UDP.Total > row.UDP.Lost
	}
	for _, other := range t.rows {
		if other.ID == row.ID && other.Role != "" && other.Role != row.Role && other.Bytes > 0 {
			return true
		}
	}
	return false
}

// oldUDP is for versions whose only final line holds the sender's bytes and the
// receiver's losses (3.1.x): what arrived is their difference.
func (t *textReader) oldUDP(row Row) {
	sent, got := row, row
	sent.Role, sent.UDP = Sender, nil
	got.Role, got.Line = Receiver, ""
	if d := row.UDP; d.Total > 0 {
		part := float64(d.Total-d.Lost) / float64(d.Total)
		got.Bytes, got.Rate = row.Bytes*part, row.Rate*part
	}
	if row.Sum {
		t.r.Sums = append(t.r.Sums, sent, got)
	} else {
		t.r.Streams = append(t.r.Streams, sent, got)
	}
	t.r.Notes = append(t.r.Notes, oldUDPNote)
}

// attribute fills Role and Direction from the process and the id. A star marks
// a stream against the usual direction (2.1.x).
func (t *textReader) attribute(row *Row) {
	p := t.r.Process
	if row.Role == "" && t.r.Tool != Iperf3 && p != "" {
		sends := p == Client
		if strings.HasPrefix(row.ID, "*") || p == Server && t.reverse[row.ID] {
			sends = !sends
		}
		if row.Sum && len(t.reverse) > 0 {
			sends = t.sumSends(sends)
		}
		row.Role = Receiver
		if sends {
			row.Role = Sender
		}
	}
	if row.Direction == "" && p == Client && t.r.Tool == Iperf3 {
		row.Direction = Up
		if t.down {
			row.Direction = Down
		}
	}
	if row.Direction == "" && p != "" && t.r.Tool != Iperf3 {
		row.Direction = Down
		if (p == Client) == (row.Role == Sender) {
			row.Direction = Up
		}
	}
}

// sumSends is the role of a sum: that of its streams, when all are reverse.
func (t *textReader) sumSends(usual bool) bool {
	for _, reverse := range t.reverse {
		if !reverse {
			return usual
		}
	}
	return !usual
}

// finals marks the final line of every id. iperf3 says it by role. Otherwise it
// is the longest line from 0, when no interval goes on beyond it: with
// intervals and no such line the process died, and there is none.
func (t *textReader) finals() map[int]bool {
	final := map[int]bool{}
	type key struct{ id, role string }
	best := map[key]int{}
	last := map[key]float64{}
	roles := false
	for i, row := range t.rows {
		if t.r.Tool == Iperf3 && row.Role != "" {
			roles, final[i] = true, true
		}
		k := key{row.ID, row.Direction}
		last[k] = max(last[k], row.End)
		if j, ok := best[k]; row.Start == 0 && !row.Omitted && (!ok || row.End >= t.rows[j].End) {
			best[k] = i
		}
	}
	if roles {
		return final
	}
	for k, i := range best {
		if t.rows[i].End >= last[k]-0.11 { // 2.0.x prints tenths
			final[i] = true
		}
	}
	return final
}
