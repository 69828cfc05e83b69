package workloads

import (
	"fmt"
	"strings"

	"kernsweep/workloads/iperf"
)

// values turns the figure into metrics; what a tool does not print is missing
// with that reason.
func (w *Iperf) values(p *iperfPlan, f iperfFigure, client *iperfEnd) []Value {
	var out []Value
	for _, m := range w.Metrics() {
		v := Value{Metric: m}
		switch m.Name {
		case metricThroughput.Name:
			v.Value, v.Resolution = f.Rate/1e6, f.Resolution/1e6
		case metricLoss.Name:
			v = datagrams(v, f, func(d iperf.Datagrams) float64 { return d.LossPercent() })
		case metricJitter.Name:
			v = datagrams(v, f, func(d iperf.Datagrams) float64 { return d.JitterMS })
		case metricRetransmits.Name:
			v = retransmits(v, p, client)
		case metricCPUTarget.Name, metricCPUPeer.Name:
			v = processCPU(v, p, client, (m.Name == metricCPUTarget.Name) == (p.Server == sidePeer))
		}
		out = append(out, v)
	}
	return out
}

// datagrams takes a figure that only a receiver has.
func datagrams(v Value, f iperfFigure, of func(iperf.Datagrams) float64) Value {
	d := f.UDP
	if d == nil {
		v.Missing = "the receiver's count was not printed"
		return v
	}
	v.Value = of(*d)
	return v
}

func retransmits(v Value, p *iperfPlan, client *iperfEnd) Value {
	if p.Tool != toolIperf3 {
		v.Missing = p.Tool + " does not print it"
		return v
	}
	t, err := p.total(client, false)
	if err != nil || t.Retr == nil {
		v.Missing = "the sender did not print it"
		return v
	}
	v.Value = float64(*t.Retr)
	return v
}

// processCPU is iperf3's own share of a CPU on one end.
func processCPU(v Value, p *iperfPlan, client *iperfEnd, ofClient bool) Value {
	switch cpu := client.report.CPU; {
	case p.Tool != toolIperf3:
		v.Missing = p.Tool + " does not print it"
	case cpu == nil:
		v.Missing = "the client did not print it"
	case ofClient:
		v.Value = cpu.Local
	default:
		v.Value = cpu.Remote
	}
	return v
}

// notes say where the figure comes from, in one line, and what ran.
func (p *iperfPlan) notes(f iperfFigure) []string {
	what := "sent"
	if f.received {
		what = "received"
	}
	line := fmt.Sprintf("%s, bytes %s as counted by the %s, in its own %.4f s", p.Tool, what, f.end.name, f.Seconds)
	if f.counted != nil {
		line = fmt.Sprintf("%s, bytes received as counted by the %s, in the %.4f s of the %s", p.Tool, f.counted.name, f.Seconds, f.end.name)
	}
	if f.said {
		line = fmt.Sprintf("%s, bytes received as the server told the %s: the server's own line is missing", p.Tool, f.end.name)
	}
	if p.ClocksDiffer {
		line += "; the target's clock is its own, so the other end's seconds were not used"
	}
	if p.Tool != toolStream {
		line += fmt.Sprintf("; server %s, client %s", orUnknown(p.ServerVersion), orUnknown(p.ClientVersion))
	}
	return []string{line}
}

func orUnknown(s string) string {
	if s == "" {
		return "of unknown version"
	}
	return s
}

// warnings are findings that leave the figure standing.
func (p *iperfPlan) warnings(f iperfFigure, server, client *iperfEnd) (out []string) {
	if zero, all := f.end.report.Stalls(); zero > 0 {
		out = append(out, fmt.Sprintf("%s: nothing moved in %d of %d intervals: did the link stall?", f.end.name, zero, all))
	}
	sent, err1 := p.total(client, false)
	received, err2 := p.total(server, true)
	if p.Reverse {
		sent, err1 = p.total(server, false)
		received, err2 = p.total(client, true)
	}
	if err1 == nil && err2 == nil && !p.UDP && (received.Bytes > sent.Bytes*1.02+65536 || received.Bytes < sent.Bytes*0.9-4<<20) {
		out = append(out, fmt.Sprintf("%.4g bytes were sent and %.4g received: were there other clients, or a proxy between?", sent.Bytes, received.Bytes))
	}
	if s, c := major(p.ServerVersion), major(p.ClientVersion); s != c {
		out = append(out, fmt.Sprintf("server %s and client %s are of different lines of iperf: compare with care", p.ServerVersion, p.ClientVersion))
	}
	return out
}

// major is "2.0" of "2.0.13a".
func major(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
