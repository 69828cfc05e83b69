package workloads

// All names every workload kind. A new one is one file and one line here.
func All() map[string]func() Workload {
	return map[string]func() Workload{
		"iperf":     func() Workload { return &Iperf{} },
		"exec":      func() Workload { return &Exec{} },
		"crunch":    func() Workload { return &Crunch{} },
		"latency":   func() Workload { return &Latency{} },
		"kernbench": func() Workload { return &Kernbench{} },
	}
}
