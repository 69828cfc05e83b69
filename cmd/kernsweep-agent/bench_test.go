package main

import (
	"bytes"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"kernsweep/workloads/wire"
)

// BenchmarkAgent prints what the agent itself costs here: its largest resident
// set, and the CPU time of one sample (the difference to a run without samples).
func BenchmarkAgent(b *testing.B) {
	const interval = 20 * time.Millisecond
	cost := func(sample time.Duration) (rssKB, cpuUS float64, samples int) {
		out, err := exec.CommandContext(b.Context(), agentPath(), "run", "-sample", sample.String(), "exec", "--", "sleep", "2").Output()
		if err != nil {
			b.Fatal(err)
		}
		s, err := wire.Read(bytes.NewReader(out))
		if err != nil {
			b.Fatal(err)
		}
		rssKB, err1 := strconv.ParseFloat(s.End["rss_kb"], 64)
		cpuUS, err2 := strconv.ParseFloat(s.End["cpu_us"], 64)
		if err1 != nil || err2 != nil {
			b.Fatalf("end record: %v", s.End)
		}
		return rssKB, cpuUS, len(s.Snapshots)
	}
	for b.Loop() {
		_, base, n0 := cost(0)
		rss, cpu, n := cost(interval)
		b.ReportMetric(rss, "rss-kB")
		b.ReportMetric((cpu-base)/float64(n-n0), "cpu-us/sample")
	}
}
