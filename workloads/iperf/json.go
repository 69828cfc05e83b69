package iperf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

func startsJSON(text []byte) bool {
	return bytes.HasPrefix(text, []byte("{")) || bytes.Contains(text, []byte("\n{"))
}

// document is what iperf3 -J prints; a field that a version lacks stays nil.
type document struct {
	Start     *start     `json:"start"`
	Intervals []interval `json:"intervals"`
	End       *end       `json:"end"`
	Error     string     `json:"error"`
	Event     string     `json:"event"` // --json-stream (3.17+): one object a line
	Data      json.RawMessage
}

type start struct {
	Version      string          `json:"version"`
	ConnectingTo json.RawMessage `json:"connecting_to"`
	Accepted     json.RawMessage `json:"accepted_connection"`
	Test         struct {
		Protocol string `json:"protocol"`
		Reverse  int    `json:"reverse"`
		Bidir    int    `json:"bidir"`
	} `json:"test_start"`
}

type interval struct {
	Streams []sum `json:"streams"`
	Sum     *sum  `json:"sum"`
	Reverse *sum  `json:"sum_bidir_reverse"`
}

type end struct {
	Streams []struct {
		Sender   *sum `json:"sender"`
		Receiver *sum `json:"receiver"`
		UDP      *sum `json:"udp"`
	} `json:"streams"`
	Sum             *sum `json:"sum"`
	Sent            *sum `json:"sum_sent"`
	Received        *sum `json:"sum_received"`
	SentReverse     *sum `json:"sum_sent_bidir_reverse"`
	ReceivedReverse *sum `json:"sum_received_bidir_reverse"`
	CPU             *struct {
		Host   float64 `json:"host_total"`
		Remote float64 `json:"remote_total"`
	} `json:"cpu_utilization_percent"`
}

// sum is a line of figures; a null (a NaN there) leaves a nil.
type sum struct {
	Socket      int      `json:"socket"`
	Start       float64  `json:"start"`
	End         float64  `json:"end"`
	Bytes       *float64 `json:"bytes"`
	Rate        *float64 `json:"bits_per_second"`
	Retransmits *int64   `json:"retransmits"`
	Omitted     bool     `json:"omitted"`
	Sender      bool     `json:"sender"`
	Jitter      *float64 `json:"jitter_ms"`
	Lost        int64    `json:"lost_packets"`
	Packets     int64    `json:"packets"`
	OutOfOrder  int64    `json:"out_of_order"`
}

func readJSON(r *Report, text []byte) {
	r.Tool = Iperf3
	doc, err := decode(r, text)
	if err != nil {
		r.Errors = append(r.Errors, err.Error())
	}
	if doc.Error != "" {
		r.Errors = append(r.Errors, doc.Error)
	}
	if s := doc.Start; s != nil {
		r.Version = strings.TrimPrefix(s.Version, "iperf ")
		switch {
		case len(s.ConnectingTo) > 0:
			r.Process = Client
		case len(s.Accepted) > 0:
			r.Process = Server
		}
		r.UDP = s.Test.Protocol == "UDP"
	} else {
		doc.Start = &start{}
	}
	j := jsonReader{r: r, doc: doc}
	j.intervals()
	if doc.End != nil {
		j.end()
	}
}

// decode reads one document, or the events of a stream, into a document.
// Banners before the first brace are kept as notes.
func decode(r *Report, text []byte) (*document, error) {
	if i := bytes.Index(text, []byte("\n{")); i >= 0 && text[0] != '{' {
		r.Notes = append(r.Notes, strings.TrimSpace(string(text[:i])))
		text = text[i+1:]
	}
	doc := &document{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var next document
		err := d.Decode(&next)
		switch {
		case errors.Is(err, io.EOF):
			return doc, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return doc, errors.New("the JSON output stops in the middle: was iperf3 killed?")
		case err != nil:
			return doc, fmt.Errorf("the JSON output cannot be read: %w", err)
		}
		if next.Event == "" {
			*doc = next
			continue
		}
		if err := doc.event(next); err != nil {
			return doc, fmt.Errorf("event %q of the JSON stream cannot be read: %w", next.Event, err)
		}
	}
}

func (d *document) event(e document) error {
	switch e.Event {
	case "start":
		return json.Unmarshal(e.Data, &d.Start)
	case "interval":
		var i interval
		err := json.Unmarshal(e.Data, &i)
		d.Intervals = append(d.Intervals, i)
		return err
	case "end":
		return json.Unmarshal(e.Data, &d.End)
	case "error":
		return json.Unmarshal(e.Data, &d.Error)
	}
	return nil
}

type jsonReader struct {
	r   *Report
	doc *document
}

func (j jsonReader) intervals() {
	for _, i := range j.doc.Intervals {
		for _, s := range append(i.Streams, deref(i.Sum, i.Reverse)...) {
			role := Receiver
			if s.Sender {
				role = Sender
			}
			if row, ok := j.row(&s, role, j.direction(s.Sender)); ok {
				row.Sum = s.Socket == 0
				j.r.Intervals = append(j.r.Intervals, row)
			}
		}
	}
}

func deref(list ...*sum) (out []sum) {
	for _, s := range list {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

// direction of data that this process sends or receives.
func (j jsonReader) direction(sends bool) string {
	switch {
	case j.r.Process == "":
		return ""
	case (j.r.Process == Client) == sends:
		return Up
	default:
		return Down
	}
}

func (j jsonReader) end() {
	e, r := j.doc.End, j.r
	for _, s := range e.Streams {
		if s.UDP != nil {
			role := Receiver
			if s.UDP.Sender {
				role = Sender
			}
			j.stream(s.UDP, role, s.UDP.Sender)
			continue
		}
		sends := s.Sender != nil && s.Sender.Sender
		j.stream(s.Sender, Sender, sends)
		j.stream(s.Receiver, Receiver, sends)
	}
	usual := Up
	if j.doc.Start.Test.Reverse != 0 {
		usual = Down
	}
	j.sum(e.Sent, Sender, usual)
	j.sum(e.Received, Receiver, usual)
	j.sum(e.SentReverse, Sender, Down)
	j.sum(e.ReceivedReverse, Receiver, Down)
	if r.UDP && e.Received == nil && e.Sum != nil {
		j.oldUDP(e.Sum, usual)
	}
	if e.CPU != nil {
		r.CPU = &CPU{Local: e.CPU.Host, Remote: e.CPU.Remote}
	}
}

const oldUDPNote = "this iperf3 prints the bytes sent only; those received follow from the datagrams lost"

// oldUDP is for versions whose only sum holds the sender's bytes and the
// receiver's losses (3.1.x): what arrived is their difference.
func (j jsonReader) oldUDP(s *sum, direction string) {
	j.sum(s, Sender, direction)
	if s.Packets <= 0 || s.Bytes == nil || s.Rate == nil {
		return
	}
	part := float64(s.Packets-s.Lost) / float64(s.Packets)
	received, rate := *s.Bytes*part, *s.Rate*part
	arrived := *s
	arrived.Bytes, arrived.Rate = &received, &rate
	j.sum(&arrived, Receiver, direction)
	j.r.Notes = append(j.r.Notes, oldUDPNote)
}

func (j jsonReader) stream(s *sum, role string, sends bool) {
	if row, ok := j.row(s, role, j.direction(sends)); ok {
		j.r.Streams = append(j.r.Streams, row)
	}
}

func (j jsonReader) sum(s *sum, role, direction string) {
	if row, ok := j.row(s, role, direction); ok {
		row.Sum, row.ID = true, "SUM"
		j.r.Sums = append(j.r.Sums, row)
	}
}

func (j jsonReader) row(s *sum, role, direction string) (Row, bool) {
	if s == nil {
		return Row{}, false
	}
	if s.Bytes == nil || s.Rate == nil {
		j.r.Errors = append(j.r.Errors, "a sum of the JSON output has no bytes or no rate")
		return Row{}, false
	}
	row := Row{ID: fmt.Sprint(s.Socket), Role: role, Direction: direction, Start: s.Start, End: s.End,
		Bytes: *s.Bytes, Rate: *s.Rate, Retransmits: s.Retransmits, Omitted: s.Omitted}
	if s.Jitter != nil && j.r.UDP && role == Receiver {
		row.UDP = &Datagrams{JitterMS: *s.Jitter, Lost: s.Lost, Total: s.Packets, OutOfOrder: s.OutOfOrder}
	}
	return row, true
}
