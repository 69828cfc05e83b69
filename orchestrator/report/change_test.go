package report

import (
	"math"
	"slices"
	"testing"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

func TestFiguresStayShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1: "1", 23.4: "23.4", 1234567: "1234570", 1e300: "1e+300", -1e-300: "-1e-300", 5e-324: "4.94066e-324",
		0.000123456789: "0.000123457", math.MaxFloat64: "1.79769e+308", 999999.5: "1000000"} {
		if got := fig(v); got != want {
			t.Errorf("fig(%v) = %s, want %s", v, got, want)
		}
		for _, s := range []string{brief(v), four(v), signed(v, 1), plus(v)} {
			if len(s) > 17 {
				t.Errorf("%v is %d long: %s", v, len(s), s)
			}
		}
	}
	for v, want := range map[float64]string{0.04: "0.0", -0.04: "0.0", 12.44: "+12.4", -12.46: "-12.5", 0.05: "+0.1"} {
		if got := signed(v, 1); got != want {
			t.Errorf("signed(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0: "<.0001", 0.00005: "<.0001", 0.0158: ".0158", 0.25: ".250", 1: "1", 0.9999: "1"} {
		if got := chance(stats.Num(v)); got != want {
			t.Errorf("chance(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestChange(t *testing.T) {
	n := stats.Num
	for _, c := range []struct {
		scale             stats.Scale
		change, low, high stats.Number
		want, interval    string
	}{
		{stats.Ratio, n(0.1242), n(0.1101), n(0.1385), "+12.4 %", "+11.0..+13.9"},
		{stats.Ratio, n(0), n(0), n(0), "0.00 %", "0.00..0.00"},
		{stats.Ratio, n(0.0001), n(-0.0001), n(0.0003), "0.01 %", "-0.01..+0.03"},
		{stats.Ratio, n(1e300), n(0), n(1e300), "+1e+302 %", "0..+1e+302"},
		{stats.Ratio, stats.Missing("no values"), stats.Missing("x"), stats.Missing("x"), "n/a (no values)", ""},
		{stats.Difference, n(-0.3), n(-0.5), n(-0.1), "-0.3 ms", "-0.5..-0.1"},
	} {
		x := compare.Comparison{Metric: workloads.Metric{Unit: "ms"}, Comparison: stats.Comparison{Scale: c.scale, Change: c.change, Low: c.low, High: c.high}}
		if got := change(&x); got != c.want && "+"+c.want != got {
			t.Errorf("%+v: %s", c, got)
		}
		if got := interval(&x, ".."); got != c.interval {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// An interval whose upper end no number holds says so, and leaves no empty note.
func TestHalfAnInterval(t *testing.T) {
	c := compare.Comparison{Primary: true}
	c.Scale, c.Change, c.Low, c.High = stats.Ratio, stats.Num(-0.4), stats.Num(-1), stats.Missing("more than a number holds")
	var notes footnotes
	comparisonRow(&c, false, nil, &notes)
	if !slices.Contains(notes.list, "more than a number holds") || slices.Contains(notes.list, "") {
		t.Errorf("notes %q", notes.list)
	}
}
