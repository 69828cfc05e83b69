package workloads

import "kernsweep/workloads/iperf"

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
			v = datagrams(v, p, f, client, func(d iperf.Datagrams) float64 { return d.LossPercent() })
		case metricJitter.Name:
			v = datagrams(v, p, f, client, func(d iperf.Datagrams) float64 { return d.JitterMS })
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
func datagrams(v Value, p *iperfPlan, f iperfFigure, client *iperfEnd, of func(iperf.Datagrams) float64) Value {
	d := f.UDP
	if d == nil && !p.Reverse { // on the sender's clock: what the server told it
		if t, err := client.report.Reported(); err == nil {
			d = t.UDP
		} else if t, err := p.total(client, true); err == nil {
			d = t.UDP
		}
	}
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
