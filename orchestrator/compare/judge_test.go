package compare

import (
	"testing"

	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

func TestSentences(t *testing.T) {
	base := cell("desk", "cfs", "iperf.to", "default")
	for name, c := range map[string]struct {
		metric workloads.Metric
		a, b   []float64
		want   string
		v      stats.Verdict
	}{
		"faster": {throughput(), around(100, 5), around(112, 5), "faster: +12.0 % (95 % CI +11.4 to +12.6 %), 5 boots against 5", stats.Faster},
		"lower":  {elapsed(), around(100, 5), around(88, 5), "faster: elapsed -12.0 % (95 % CI -12.5 to -11.5 %; lower is better), 5 boots against 5", stats.Faster},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			l.cells("desk", "iperf.to", "default", []workloads.Metric{c.metric}, "cfs", "bfs")
			l.abba(base, "bfs", c.a, c.b)
			got := judge1(t, l, Options{})
			if got.Sentence != c.want || got.Verdict != c.v {
				t.Errorf("%s\n got %s\nwant %s", got.Verdict, got.Sentence, c.want)
			}
		})
	}
}
