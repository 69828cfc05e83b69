// Package iperf reads what iperf2 (2.0.5 to 2.1.x, text and CSV) and iperf3
// (text, JSON, JSON stream) print, and picks the figure that can be believed.
//
// Read turns the output of one process into a Report: rows with bytes, seconds
// and bit/s, each with the step it was printed with. Report.Total picks what
// arrived (or what was sent) from it. Nothing here trusts an exit status, and a
// row is known by its id, endpoints and role, never by its line number.
package iperf

import (
	"bytes"
	"net/netip"
	"strings"
)

// Tools that a Report can be of.
const (
	Iperf2 = "iperf2"
	Iperf3 = "iperf3"
)

// Processes: which end of a test a Report is of.
const (
	Client = "client"
	Server = "server"
)

// Roles: who counted the bytes of a Row.
const (
	Sender   = "sender"
	Receiver = "receiver"
)

// Directions of the data of a Row.
const (
	Up   = "up"   // client to server
	Down = "down" // server to client
)

// Row is one line of figures.
type Row struct {
	Line      string // as printed; "" for JSON
	ID        string // "3", "*1", "SUM"
	Sum       bool   // a sum of streams
	Role      string // Sender, Receiver, "" when the tool does not say
	Direction string // Up, Down, "" when the tool does not say
	Start     float64
	End       float64 // s
	TimeStep  float64 // step that Start and End were printed with, s; 0 = exact
	Bytes     float64
	BytesStep float64
	Rate      float64 // bit/s
	RateStep  float64 // bit/s

	Retransmits *int64
	UDP         *Datagrams
	Omitted     bool           // iperf3 --omit: not part of the result
	From, To    netip.AddrPort // endpoints in the order printed (CSV); invalid when absent
}

// Datagrams are the UDP figures of a Row, counted by the receiver.
type Datagrams struct {
	JitterMS    float64
	Lost, Total int64
	OutOfOrder  int64
}

// LossPercent is the share of datagrams that did not arrive.
func (d Datagrams) LossPercent() float64 {
	if d.Total <= 0 {
		return 0
	}
	return 100 * float64(d.Lost) / float64(d.Total)
}

// CPU is what iperf3 says of its own process on both ends, in percent of one
// CPU. Work done in interrupts is not in it.
type CPU struct{ Local, Remote float64 }

// Report is the output of one iperf process.
type Report struct {
	Tool         string // Iperf2, Iperf3, "" when nothing was recognised
	Version      string // "3.12"; "" when the output does not say
	PeerVersion  string // of the other end, where 2.1.x prints it
	Process      string // Client, Server, "" when the output does not say
	UDP          bool
	Streams      []Row // the final line of each stream
	Sums         []Row // final sums
	Intervals    []Row // everything before the final lines, sums included
	ServerReport []Row // what a UDP server told the client at the end
	CPU          *CPU
	Errors       []string // what makes the output worthless, as printed
	Notes        []string // odd lines worth keeping
}

// Hint tells Read what the output itself may leave open.
type Hint struct {
	Process string // Client or Server
	Version string // of the tool: "2.0.5"
}

// Read reads the standard output and standard error of one iperf process. It
// never fails: what cannot be read is in Report.Errors.
func Read(stdout, stderr []byte, h Hint) *Report {
	r := &Report{Version: h.Version, Process: h.Process}
	switch text := bytes.TrimSpace(stdout); {
	case startsJSON(text):
		readJSON(r, text)
	case looksCSV(text):
		readCSV(r, string(text))
	default:
		readText(r, string(stdout))
	}
	readStderr(r, string(stderr))
	return r
}

// quiet are lines of standard error that say nothing against the run.
func quiet(line string) bool {
	return strings.HasPrefix(line, "Waiting for server threads") ||
		strings.HasPrefix(strings.ToUpper(line), "WARNING") ||
		strings.Contains(line, "interrupt - the server has terminated") // our own stop
}

var bad = [...]string{"failed", "error", "unknown host", "unrecognized option", "not supported",
	"invalid", "unable to", "refused", "reset by peer", "has terminated", "closed unexpectedly", "in use"}

func readStderr(r *Report, text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "Usage: ") { // the help text follows
			return
		}
		if strings.HasPrefix(line, "iperf3: ") && r.Tool == "" {
			r.Tool = Iperf3
		}
		if !quiet(line) && isBad(line) {
			r.Errors = append(r.Errors, line)
			continue
		}
		r.Notes = append(r.Notes, line)
	}
}

func isBad(line string) bool {
	low := strings.ToLower(line)
	for _, b := range bad {
		if strings.Contains(low, b) {
			return true
		}
	}
	return false
}
