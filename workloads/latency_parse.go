package workloads

import (
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"kernsweep/workloads/wire"
)

// quantiles are the percentiles and the samples each one needs.
func quantiles() []struct {
	name  string
	share float64
	needs int
} {
	return []struct {
		name  string
		share float64
		needs int
	}{{"p50", 0.5, 20}, {"p95", 0.95, 100}, {"p99", 0.99, 1000}, {"p99.9", 0.999, 10000}}
}

// series is one of the probe's, sorted, in us.
type series []float64

// Parse computes the statistics of the wakeups that the spool holds.
func (l *Latency) Parse(files fs.FS) (Parsed, error) {
	var p Parsed
	s, err := readSpool(files, "spool")
	if s == nil {
		return p, err
	}
	var latency, late, intended series
	moved := 0
	for _, w := range s.Points[wakeups] {
		if len(w) != 5 || w[1] < 0 || w[2] < 0 {
			return p, &InvalidError{Reason: fmt.Sprintf("the probe measured the impossible: %v", w)}
		}
		late, latency = append(late, float64(w[1])/1e3), append(latency, float64(w[2])/1e3)
		intended = append(intended, float64(w[1]+w[2])/1e3)
		if w[3] != w[4] {
			moved++
		}
	}
	for _, x := range []series{latency, late, intended} {
		slices.Sort(x)
	}
	for _, m := range l.Metrics() {
		p.Values = append(p.Values, l.value(m, latency, late, intended, s))
	}
	if n := len(latency); n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("both ends ran on different CPUs in %.0f %% of the wakeups", 100*float64(moved)/float64(n)))
	}
	if s.Begin["autogroup"] == "1" {
		p.Notes = append(p.Notes, "autogroup scheduling is on; the load ran in sessions of its own, apart from the probe")
	}
	p.Warnings = latencyDoubts(s, len(latency))
	return p, withLastWords(err, s, files)
}

func (l *Latency) value(m Metric, latency, late, intended series, s *wire.Spool) Value {
	of, what := latency, m.Name
	if kind, rest, ok := strings.Cut(m.Name, "."); ok && kind != "p99" {
		what = rest
		of = map[string]series{"late": late, "intended": intended}[kind]
	}
	switch what {
	case "samples":
		return have(m, float64(len(latency)))
	case "skipped_periods":
		n, err := strconv.ParseFloat(s.Values["skipped_periods"]["value"], 64)
		if err != nil {
			return lack(m, "the probe did not end")
		}
		return have(m, n)
	case "runtime":
		return l.runtime(m, s)
	}
	return of.value(m, what)
}

// value is a statistic of the series, or missing when it has too few samples.
func (x series) value(m Metric, what string) Value {
	n := len(x)
	for _, q := range quantiles() {
		if q.name != what {
			continue
		}
		if n < q.needs {
			return lack(m, fmt.Sprintf("%d samples, %s needs %d", n, q.name, q.needs))
		}
		return have(m, x[max(0, int(math.Ceil(q.share*float64(n)))-1)])
	}
	if n == 0 {
		return lack(m, "no samples")
	}
	mean, sd := x.moments()
	switch {
	case what == "max":
		return have(m, x[n-1])
	case what == "mean":
		return have(m, mean)
	case n < 2:
		return lack(m, "1 sample, sd needs 2")
	default:
		return have(m, sd)
	}
}

// moments are mean and sample standard deviation.
func (x series) moments() (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sd / float64(len(x)-1))
}

// runtime is the time from the first start to the last end of a load that ended
// the trial, or the mean of those runs of a looped load that were whole.
func (l *Latency) runtime(m Metric, s *wire.Spool) Value {
	var begin, end, sum int64
	n := 0
	for _, t := range s.Tasks {
		if t.Name != loadTask || t.Exit != 0 {
			continue
		}
		if n == 0 || t.StartNS < begin {
			begin = t.StartNS
		}
		end = max(end, t.EndNS)
		sum += t.EndNS - t.StartNS
		n++
	}
	switch {
	case n == 0 && l.untilLoad():
		return lack(m, "the load did not end")
	case n == 0:
		return lack(m, "no run of the load ended within the trial")
	case l.untilLoad():
		return have(m, float64(end-begin)/1e9)
	default:
		return have(m, float64(sum)/float64(n)/1e9)
	}
}

func latencyDoubts(s *wire.Spool, samples int) (w []string) {
	skipped, _ := strconv.Atoi(s.Values["skipped_periods"]["value"])
	if share := 100 * float64(skipped) / float64(max(1, samples+skipped)); share > 5 {
		w = append(w, fmt.Sprintf("%d of %d periods were over before the waker could sleep to them: the figures are those of the others", skipped, samples+skipped))
	}
	for _, n := range s.Notes {
		if strings.HasPrefix(n, "the probe stopped after") {
			w = append(w, n+"; the load ran on without it")
		}
	}
	return w
}
