package workloads

import "path"

// Tool is something that a workload wants to find before it begins.
type Tool struct {
	Name string // of a program, or an absolute path
	Peer bool   // on the peer, too
}

// ToolUser is a workload that needs tools which nobody brings: what lacks them is
// n/a or fails.
type ToolUser interface {
	Tools() []Tool
}

// Tools is iperf itself; "auto" takes what there is, and "stream" needs none.
func (w *Iperf) Tools() []Tool {
	switch w.filled().Tool {
	case toolIperf2:
		return []Tool{{Name: "iperf", Peer: true}}
	case toolIperf3:
		return []Tool{{Name: "iperf3", Peer: true}}
	}
	return nil
}

// Tools are make, and the tree.
func (k *Kernbench) Tools() []Tool {
	t := []Tool{{Name: "make"}}
	if k.Source != "" {
		t = append(t, Tool{Name: k.Source})
	}
	return t
}

// Tools is the command's program; a script's are not known.
func (e *Exec) Tools() []Tool {
	if len(e.Command) == 0 || e.Command[0] != path.Base(e.Command[0]) && !path.IsAbs(e.Command[0]) {
		return nil
	}
	return []Tool{{Name: e.Command[0]}}
}
