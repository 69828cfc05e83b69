package workloads

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	"kernsweep/workloads/iperf"
	"kernsweep/workloads/wire"
)

// iperfEnd is what one end of a trial left behind.
type iperfEnd struct {
	name   string // "server on the target"
	report *iperf.Report
	spool  *wire.Spool // nil: none was collected
	torn   error
	silent bool // neither stdout nor stderr was collected
}

// Parse implements Workload. An exit status is believed only when it is bad;
// success is a final line that holds against its own figures and its time.
func (w *Iperf) Parse(files fs.FS) (Parsed, error) {
	p, notes := w.kept(files)
	server := p.readEnd(files, true)
	client := p.readEnd(files, false)
	out := Parsed{Notes: notes}
	for _, e := range []*iperfEnd{client, server} {
		for _, n := range e.report.Notes {
			out.Notes = append(out.Notes, e.name+": "+n)
		}
	}
	if err := firstFault(server, client); err != nil {
		return out, err
	}
	f, err := p.figure(server, client)
	if err != nil {
		return out, err
	}
	if err := p.valid(f, server, client); err != nil {
		return out, err
	}
	out.Values = w.values(p, f, client)
	out.Notes = append(out.Notes, p.notes(f)...)
	out.Warnings = p.warnings(f, server, client)
	return out, nil
}

// kept reads the trial's plan; without it the configuration stands in.
func (w *Iperf) kept(files fs.FS) (*iperfPlan, []string) {
	f := w.filled()
	p := &iperfPlan{Tool: f.Tool, Server: f.Server, Direction: f.Direction, Reverse: f.reverse(), UDP: f.UDP,
		Parallel: f.Parallel, Duration: f.Duration, Clock: f.Clock}
	text, err := fs.ReadFile(files, iperfPlanFile)
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err != nil {
		return p, []string{fmt.Sprintf("%s cannot be read (%v): the configuration was taken for it", iperfPlanFile, err)}
	}
	return p, nil
}

func (p *iperfPlan) readEnd(files fs.FS, server bool) *iperfEnd {
	e := &iperfEnd{name: "client on the " + p.client()}
	hint := iperf.Hint{Process: iperf.Client, Version: p.ClientVersion}
	if server {
		e.name = "server on the " + p.Server
		hint = iperf.Hint{Process: iperf.Server, Version: p.ServerVersion}
	}
	prefix := p.prefix(server)
	stdout, errOut := fs.ReadFile(files, prefix+"stdout")
	stderr, errErr := fs.ReadFile(files, prefix+"stderr")
	e.silent = errOut != nil && errErr != nil
	e.report = iperf.Read(stdout, stderr, hint)
	if p.Tool == toolStream {
		e.report = &iperf.Report{Tool: toolStream}
	}
	if raw, err := fs.ReadFile(files, prefix+"spool"); err == nil {
		e.spool, e.torn = wire.Read(bytes.NewReader(raw))
	}
	return e
}

// firstFault finds why the trial cannot count, the likeliest first cause first:
// a server that never listened, the client's own words, the server's, and then
// what the agents saw.
func firstFault(server, client *iperfEnd) error {
	if client.silent && client.spool == nil {
		if why := server.ended(); why != "" {
			return &FailedError{Reason: server.name + ": " + why}
		}
		if server.silent && server.spool == nil {
			return &FailedError{Reason: "neither end left any output: was it collected?"}
		}
		return &FailedError{Reason: client.name + " left no output: it was not started, or it was not collected"}
	}
	for _, e := range []*iperfEnd{client, server} {
		if len(e.report.Errors) > 0 {
			return &FailedError{Reason: e.name + ": " + e.report.Errors[0]}
		}
	}
	for _, e := range []*iperfEnd{client, server} {
		if why := e.ended(); why != "" {
			return &FailedError{Reason: e.name + ": " + why}
		}
	}
	return nil
}

// ended says how the agent saw its process fail, "" when it did not. A server
// that the agent stopped is no failure.
func (e *iperfEnd) ended() string {
	switch {
	case e.spool == nil:
		return ""
	case e.torn != nil:
		return e.torn.Error() + " (did the machine die?)"
	}
	switch end := e.spool.End; end["status"] {
	case "timeout":
		return "still running at its deadline; it was killed"
	case "failed":
		if end["reason"] == "" {
			return "it failed"
		}
		return end["reason"]
	}
	return ""
}

// iperfFigure is the figure chosen and where it comes from.
type iperfFigure struct {
	iperf.Total
	end      *iperfEnd
	counted  *iperfEnd // the other end, where only the seconds are end's
	server   bool      // it is the server's line
	received bool
	said     bool // by the other end: a UDP server's report to its client
}

// figure takes the receiver's line, or on the target's clock the line of the
// process that ran there.
func (p *iperfPlan) figure(server, client *iperfEnd) (iperfFigure, error) {
	f := iperfFigure{server: !p.Reverse, received: true} // the receiver
	if p.Clock == clockTarget {
		f.server = p.Server == sideTarget
		f.received = f.server != p.Reverse
	}
	f.end = client
	if f.server {
		f.end = server
	}
	var err error
	f.Total, err = p.total(f.end, f.received)
	if errors.Is(err, iperf.ErrNoFinal) && f.server && f.received && p.Clock != clockTarget {
		// iperf3 exchanges results, and an iperf2 UDP server reports to its client.
		f.end, f.said = client, true
		if f.Total, err = client.report.Reported(); errors.Is(err, iperf.ErrNoFinal) && p.Tool == toolIperf3 {
			f.Total, err = p.total(client, true)
		}
	}
	switch {
	case errors.Is(err, iperf.ErrNoFinal):
		who := client
		if f.server {
			who = server
		}
		return f, &FailedError{Reason: who.name + " left no final line: what arrived is not known"}
	case err != nil:
		return f, &InvalidError{Reason: f.end.name + ": " + err.Error()}
	case p.UDP && !f.received:
		return f, f.arrived(p, server, client)
	}
	return f, nil
}

// arrived puts what the other end received in the place of what was sent, in
// the seconds of the chosen clock: a sender of datagrams does not see losses.
func (f *iperfFigure) arrived(p *iperfPlan, server, client *iperfEnd) error {
	other := server
	if f.server {
		other = client
	}
	there, err := p.total(other, true)
	if errors.Is(err, iperf.ErrNoFinal) && !f.server {
		there, err = client.report.Reported()
	}
	switch {
	case errors.Is(err, iperf.ErrNoFinal):
		return &FailedError{Reason: other.name + " left no final line: what arrived is not known"}
	case err != nil:
		return &InvalidError{Reason: other.name + ": " + err.Error()}
	}
	f.counted = other
	f.Bytes, f.UDP, f.Rate = there.Bytes, there.UDP, there.Bytes*8/f.Seconds
	return nil
}

// total is what one end counted.
func (p *iperfPlan) total(e *iperfEnd, received bool) (iperf.Total, error) {
	if p.Tool == toolStream {
		return streamTotal(e)
	}
	role, direction := iperf.Sender, iperf.Up
	if received {
		role = iperf.Receiver
	}
	if p.Reverse {
		direction = iperf.Down
	}
	return e.report.Total(role, direction)
}

// streamTotal reads the agent's own stream, which counts in bytes and seconds.
func streamTotal(e *iperfEnd) (iperf.Total, error) {
	if e.spool == nil {
		return iperf.Total{}, iperf.ErrNoFinal
	}
	var v [2]float64
	for i, name := range []string{"bytes", "seconds"} {
		text, ok := e.spool.Values[name]["value"]
		if !ok {
			return iperf.Total{}, iperf.ErrNoFinal
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return iperf.Total{}, fmt.Errorf("%s = %q is not a number", name, text)
		}
		v[i] = f
	}
	if v[0] < 0 || v[1] <= 0 {
		return iperf.Total{}, fmt.Errorf("impossible: %g bytes in %g s", v[0], v[1])
	}
	return iperf.Total{Bytes: v[0], Seconds: v[1], Rate: v[0] * 8 / v[1], Streams: 1}, nil
}

// valid applies the hard checks: something arrived, and the transfer lasted as
// long as was asked for. A length is compared on the clock that timed it, or on
// one that agrees with that.
func (p *iperfPlan) valid(f iperfFigure, server, client *iperfEnd) error {
	if f.Bytes == 0 {
		return &FailedError{Reason: f.end.name + ": 0 bytes arrived"}
	}
	if u := f.UDP; u != nil && u.Total == 0 {
		return &FailedError{Reason: f.end.name + ": no datagram arrived"}
	}
	timer, receives := client, p.Reverse
	if p.serverTimes() {
		timer, receives = server, !p.Reverse
	}
	if f.end == timer || !p.ClocksDiffer {
		if err := p.lasted(f.end.name, f.Seconds, true); err != nil {
			return err
		}
	}
	own, err := p.total(timer, receives)
	switch {
	case errors.Is(err, iperf.ErrNoFinal):
		return &FailedError{Reason: timer.name + " left no final line"}
	case err != nil:
		return &InvalidError{Reason: timer.name + ": " + err.Error()}
	}
	// A host that waits for a slow guest's clock to empty its queue ends late.
	return p.lasted(timer.name, own.Seconds, f.end == timer || !p.ClocksDiffer)
}

// serverTimes says whose clock ends a transfer: in iperf3 the client's, else
// the sender's, which is the server's when it is asked to reverse.
func (p *iperfPlan) serverTimes() bool { return p.Reverse && p.Tool != toolIperf3 }

// lasted compares a length with what was asked for; both says that it must not
// be too long either.
func (p *iperfPlan) lasted(name string, seconds float64, both bool) error {
	want := p.Duration.Seconds()
	if seconds >= 0.95*want && (seconds <= 1.1*want || !both) {
		return nil
	}
	return &InvalidError{Reason: fmt.Sprintf("%s: the transfer lasted %.4g s, not %.4g s (0.95 to 1.1 of it would do)", name, seconds, want)}
}
