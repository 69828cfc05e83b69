package console

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// holdTime is how long a record waits for an earlier one.
	holdTime = 150 * time.Millisecond
	// restartAfter is how long a kernel must have been silent for a lower number
	// to be a new kernel's; one far lower is so at once.
	restartAfter = 2 * time.Second
	restartBelow = 200 // records
	maxHeld      = 256 // records; more are not waited with
	maxRecord    = 64 << 10
)

// netRecords puts the records of extended netconsole in order and writes them
// as the lines of a console. Plain packets pass as they are.
type netRecords struct {
	next  uint64 // number of the record that is due; 0 with !begun
	begun bool
	held  map[uint64]*netRecord
	since time.Time // when the oldest held record came; zero: none
	last  time.Time // when the last record came
	open  bool      // the last line has no end yet
}

// netRecord is one record, whole or in part (ncfrag).
type netRecord struct {
	seq, usec uint64
	flag      byte // '-', 'c' or '+': a line in fragments (kernel Documentation/ABI/testing/dev-kmsg)
	body      []byte
	have      int    // bytes of body that came
	got       []bool // which, while it is in part; nil: all
}

// parseNet takes a packet apart: [RELEASE,]LEVEL,SEQ,USEC,FLAG[,KEY=VALUE…];TEXT.
// ok is false for a plain packet. off and total are of a fragment, total 0 else.
func parseNet(p []byte) (r netRecord, off, total int, ok bool) {
	head, body, found := bytes.Cut(p, []byte{';'})
	if !found || len(head) > 512 || bytes.IndexByte(head, '\n') >= 0 {
		return r, 0, 0, false
	}
	f := strings.Split(string(head), ",")
	if len(f) >= 5 && !number(f[0]) { // the release comes first
		f = f[1:]
	}
	if len(f) < 4 || !number(f[0]) || len(f[3]) != 1 || !strings.Contains("-c+", f[3]) {
		return r, 0, 0, false
	}
	var err1, err2 error
	r.seq, err1 = strconv.ParseUint(f[1], 10, 64)
	r.usec, err2 = strconv.ParseUint(f[2], 10, 64)
	if err1 != nil || err2 != nil {
		return r, 0, 0, false
	}
	r.flag, r.body = f[3][0], body
	for _, kv := range f[4:] {
		if v, is := strings.CutPrefix(kv, "ncfrag="); is {
			a, b, _ := strings.Cut(v, "/")
			off, err1 = strconv.Atoi(a)
			total, err2 = strconv.Atoi(b)
			if err1 != nil || err2 != nil || off < 0 || total <= 0 || total > maxRecord || off+len(body) > total {
				return r, 0, 0, false
			}
		}
	}
	return r, off, total, true
}

func number(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// add takes a packet and appends the lines that are complete by it.
func (n *netRecords) add(out, p []byte, now time.Time) []byte {
	r, off, total, ok := parseNet(p)
	if !ok {
		return append(out, crlf(p)...)
	}
	if n.held == nil {
		n.held = map[uint64]*netRecord{}
	}
	if n.begun && r.seq < n.next && (r.seq+restartBelow < n.next || now.Sub(n.last) > restartAfter) {
		out = n.flush(out)
		n.begun = false
	}
	n.last = now
	switch {
	case !n.begun:
		n.begun, n.next = true, r.seq
	case r.seq < n.next:
		return n.late(out, r)
	}
	n.keep(r, off, total)
	if n.since.IsZero() {
		n.since = now
	}
	out = n.drain(out)
	if len(n.held) > maxHeld || !n.since.IsZero() && now.Sub(n.since) >= holdTime {
		out = n.flush(out)
	}
	return out
}

// late writes a record whose place is past: its doubles cannot be told from it
// any more, and both are better than none.
func (n *netRecords) late(out []byte, r netRecord) []byte {
	out = n.say(out, fmt.Sprintf("record %d came late or twice:", r.seq))
	return n.line(out, &r)
}

// keep stores a record or a part of one.
func (n *netRecords) keep(r netRecord, off, total int) {
	body := bytes.Clone(r.body) // the packet's memory is used again
	h := n.held[r.seq]
	if total == 0 {
		if h == nil || h.got != nil {
			r.body, r.have = body, len(body)
			n.held[r.seq] = &r
		}
		return
	}
	if h == nil {
		r.body, r.got = make([]byte, total), make([]bool, total)
		h = &r
		n.held[r.seq] = h
	}
	if h.got == nil || len(h.got) != total {
		return
	}
	for i, c := range body {
		if !h.got[off+i] {
			h.body[off+i], h.got[off+i] = c, true
			h.have++
		}
	}
	if h.have == total {
		h.got = nil
	}
}

// drain writes the records that are whole and next in order.
func (n *netRecords) drain(out []byte) []byte {
	for {
		r := n.held[n.next]
		if r == nil || r.got != nil {
			if len(n.held) == 0 {
				n.since = time.Time{}
			}
			return out
		}
		out = n.line(out, r)
		delete(n.held, n.next)
		n.next++
	}
}

// flush gives up what has not come and writes what is held.
func (n *netRecords) flush(out []byte) []byte {
	for len(n.held) > 0 {
		first := ^uint64(0)
		for s := range n.held {
			first = min(first, s)
		}
		if first > n.next {
			out = n.say(out, fmt.Sprintf("records %d to %d did not come (lost, or below the console's log level)", n.next, first-1))
		}
		r := n.held[first]
		out = n.line(out, r)
		if r.got != nil {
			out = n.say(out, fmt.Sprintf("%d of %d bytes of record %d did not come", len(r.got)-r.have, len(r.got), first))
		}
		delete(n.held, first)
		n.next = first + 1
	}
	n.since = time.Time{}
	return out
}

// due is when the oldest held record is given up for, zero for never.
func (n *netRecords) due() time.Time {
	if n.since.IsZero() {
		return time.Time{}
	}
	return n.since.Add(holdTime)
}

// expire is called when due is past.
func (n *netRecords) expire(out []byte, now time.Time) []byte {
	if d := n.due(); d.IsZero() || now.Before(d) {
		return out
	}
	return n.flush(out)
}

// say writes a line of our own.
func (n *netRecords) say(out []byte, text string) []byte {
	return append(n.end(out), "[kernsweep: netconsole: "+text+"]\r\n"...)
}

// end ends a line that was left open.
func (n *netRecords) end(out []byte) []byte {
	if n.open {
		out = append(out, "\r\n"...)
	}
	n.open = false
	return out
}

// line writes a record as a serial console shows it. A fragment of a line is
// left open, and a fragment after one goes on in it.
func (n *netRecords) line(out []byte, r *netRecord) []byte {
	fragment := r.flag != '-'
	if !fragment || !n.open {
		out = n.end(out)
		out = append(out, fmt.Sprintf("[%5d.%06d] ", r.usec/1e6, r.usec%1e6)...)
	}
	text, _, _ := bytes.Cut(r.body, []byte{'\n'}) // a dictionary follows
	out = append(out, crlf(unescape(bytes.ReplaceAll(text, []byte{0}, []byte{'?'})))...)
	n.open = fragment
	if !fragment {
		out = append(out, "\r\n"...)
	}
	return out
}

// unescape undoes \xNN, which printk makes of control characters, of bytes
// above 126 and of the backslash.
func unescape(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '\\' && i+3 < len(b) && b[i+1] == 'x' {
			if v, err := strconv.ParseUint(string(b[i+2:i+4]), 16, 8); err == nil {
				out = append(out, byte(v))
				i += 3
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

// crlf ends lines as a serial console does.
func crlf(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte{'\n'}), []byte{'\n'}, []byte("\r\n"))
}
