package workloads

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"kernsweep/workloads/wire"
)

// probed makes the files of a trial with n wakeups, latencies of 1, 2, … us,
// from the last to the first, each 10 us after a late waker.
func probed(t *testing.T, n int, end string, more func(w *wire.Writer)) fstest.MapFS {
	t.Helper()
	return spooled(t, end, func(w *wire.Writer) {
		var b strings.Builder
		for i := n; i > 0; i-- {
			fmt.Fprintf(&b, "%d 10000 %d 0 %d\n", 1e9+int64(n-i)*15e6, i*1000, i%2)
		}
		if n > 0 {
			w.Write(wire.TypePoints, 1, "wakeup", []byte(b.String()))
		}
		if more != nil {
			more(w)
		}
	})
}

func TestLatencyParse(t *testing.T) {
	l := &Latency{Load: 1}
	p, err := l.Parse(probed(t, 2000, "status=ok\n", func(w *wire.Writer) {
		w.Write(wire.TypeValue, 1, "skipped_periods", []byte("value=7\nunit=count\n"))
		putTask(w, "load", 10, 40, 29)
		putTask(w, "load", 12, 45, 29)
		putTask(w, "waker", 1, 50, 1)
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"p50": 1000, "p95": 1900, "p99": 1980, "max": 2000, "mean": 1000.5,
		"sd": 577.49458871921, "intended.p99": 1990, "intended.max": 2010, "late.p50": 10, "late.p99": 10, "late.max": 10,
		"samples": 2000, "skipped_periods": 7, "runtime": 35} {
		if v := valueOf(t, p, name); v.Missing != "" || math.Abs(v.Value-want) > 1e-6 {
			t.Errorf("%s = %v %s, want %v", name, v.Value, v.Missing, want)
		}
	}
	if v := valueOf(t, p, "p99.9"); v.Missing != "2000 samples, p99.9 needs 10000" {
		t.Errorf("p99.9: %+v", v)
	}
	if v := valueOf(t, p, "p99"); !v.Primary || v.Better != LowerIsBetter {
		t.Errorf("%+v", v.Metric)
	}
	if !slices.Contains(p.Notes, "both ends ran on different CPUs in 50 % of the wakeups") || len(p.Warnings) != 0 {
		t.Errorf("%q %q", p.Notes, p.Warnings)
	}
}

func TestLatencyParseFew(t *testing.T) {
	p, err := (&Latency{}).Parse(probed(t, 312, "status=ok\n", nil))
	if err != nil {
		t.Fatal(err)
	}
	if v := valueOf(t, p, "p99"); v.Missing != "312 samples, p99 needs 1000" {
		t.Errorf("%+v", v)
	}
	near(t, valueOf(t, p, "p95"), 297)
	for n, want := range map[int]string{0: "no samples", 1: "1 sample, sd needs 2"} {
		p, _ := (&Latency{Load: 2, Duration: time.Second}).Parse(probed(t, n, "status=ok\n", nil))
		if v := valueOf(t, p, "sd"); v.Missing != want {
			t.Errorf("sd of %d: %+v", n, v)
		}
		if v := valueOf(t, p, "runtime"); v.Missing == "" || v.Better != Informative {
			t.Errorf("runtime of a load that never ended: %+v", v)
		}
	}
	p, err = (&Latency{}).Parse(probed(t, 90, "status=ok\n", func(w *wire.Writer) {
		w.Write(wire.TypeValue, 1, "skipped_periods", []byte("value=10\nunit=count\n"))
		w.Write(wire.TypeNote, 1, "", []byte("the probe stopped after 65536 wakeups: its memory was full"))
	}))
	if err != nil || len(p.Warnings) != 2 || !strings.Contains(p.Warnings[0], "10 of 100 periods") {
		t.Errorf("%v %q", err, p.Warnings)
	}
}

func TestLatencyParseFailures(t *testing.T) {
	var failed *FailedError
	if _, err := (&Latency{Load: 1}).Parse(probed(t, 5, "status=failed\nreason=load: exited with status 2\n", nil)); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
	var invalid *InvalidError
	_, err := (&Latency{}).Parse(spooled(t, "status=ok\n", func(w *wire.Writer) { w.Write(wire.TypePoints, 1, "wakeup", []byte("1 2 -3 0 0\n")) }))
	if !errors.As(err, &invalid) {
		t.Errorf("a negative latency: %v", err)
	}
}

func TestLatencyCheck(t *testing.T) {
	for _, l := range []Latency{{Schedule: "slow"}, {PeriodMin: time.Second}, {PeriodMax: time.Hour}, {Load: -1}, {Work: 5},
		{Command: []string{"make"}}, {Load: 1, Work: 3, Command: []string{"make"}}, {Place: "here"}, {Duration: -1}, {Load: 1, Command: []string{""}}} {
		if l.Check() == nil {
			t.Errorf("%+v passed", l)
		}
	}
	for _, l := range []Latency{{}, {Schedule: "historic", Load: 2, Command: []string{"make", "-j{jobs}"}}, {PeriodMin: time.Millisecond, Place: "same"}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
		if l.Estimate() <= 0 {
			t.Errorf("%+v: estimate %v", l, l.Estimate())
		}
	}
}

// Percentiles are samples, rise with their share, and never exceed the maximum.
func TestQuantileProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := series(rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 1200).Draw(t, "samples"))
		slices.Sort(x)
		before := 0.0
		for _, q := range quantiles() {
			v := x.value(Metric{}, q.name)
			if (v.Missing == "") != (len(x) >= q.needs) {
				t.Fatalf("%s of %d samples: %q", q.name, len(x), v.Missing)
			}
			if v.Missing != "" {
				continue
			}
			if !slices.Contains(x, v.Value) || v.Value < before {
				t.Fatalf("%s = %v after %v", q.name, v.Value, before)
			}
			below := 0
			for _, s := range x {
				if s <= v.Value {
					below++
				}
			}
			if float64(below) < q.share*float64(len(x)) {
				t.Fatalf("%s = %v covers %d of %d", q.name, v.Value, below, len(x))
			}
			before = v.Value
		}
	})
}

func TestLatencyOnThisMachine(t *testing.T) {
	agent := buildAgent(t)
	fast := Latency{PeriodMin: time.Millisecond, PeriodMax: 2 * time.Millisecond}
	idle := fast
	idle.Duration = 500 * time.Millisecond
	own := fast
	own.Load, own.Work = 1, 300
	command := fast
	command.Load, command.Command, command.Duration = 2, []string{"sh", "-c", "test {jobs} = 4"}, 500*time.Millisecond
	for _, l := range []*Latency{&idle, &own, &command} {
		p, err := trial(t, agent, l)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		n := valueOf(t, p, "samples").Value
		if n < 1 {
			t.Errorf("%+v: no samples", l)
			continue
		}
		p50, most := valueOf(t, p, "p50"), valueOf(t, p, "max")
		if (p50.Missing == "") != (n >= 20) || n >= 20 && p50.Value <= 0 || most.Value < p50.Value {
			t.Errorf("p50 %+v, max %+v", p50, most)
		}
		if l.Load > 0 && valueOf(t, p, "runtime").Missing != "" {
			t.Errorf("%+v", valueOf(t, p, "runtime"))
		}
	}
	failing := fast
	failing.Load, failing.Command = 1, []string{"sh", "-c", "echo no such header >&2; exit 2"}
	if _, err := trial(t, agent, &failing); err == nil || !strings.Contains(err.Error(), "no such header") {
		t.Errorf("a failing load: %v", err)
	}
}
