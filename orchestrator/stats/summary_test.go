package stats

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func near(a Number, want float64) bool {
	return a.OK() && math.Abs(a.Value-want) <= 5e-5*math.Max(1, math.Abs(want))
}

// The six iperf results of the historic router posting, one boot each side.
func TestOneBootHasNoInterval(t *testing.T) {
	s := Summarise([][]float64{{23.0, 22.9, 22.9}}, 0.1)
	if s.Boots != 1 || s.Trials != 3 || !near(s.Median, 22.93328) || !near(s.Mean, 22.93333) || !near(s.SD, 0.057735) || !near(s.SDWithin, 0.057735) {
		t.Errorf("%+v", s)
	}
	for name, n := range map[string]Number{"low": s.CILow, "high": s.CIHigh, "between": s.SDBetween} {
		if n.Missing != "one boot" {
			t.Errorf("%s: %+v", name, n)
		}
	}
}

// Five boots of one trial: by hand, z = ln x, mean 4.60512, sd 0.0158124,
// t(.975, 4) = 2.776445.
func TestIntervalIsTOnLogs(t *testing.T) {
	s := Summarise([][]float64{{98}, {99}, {100}, {101}, {102}}, 0)
	half := 2.776445 * 0.015812 / math.Sqrt(5)
	mean := (math.Log(98) + math.Log(99) + math.Log(100) + math.Log(101) + math.Log(102)) / 5
	if !near(s.Median, 100) || math.Abs(s.GeoMean.Value-math.Exp(mean)) > 1e-9 ||
		math.Abs(s.CILow.Value-math.Exp(mean-half)) > 1e-3 || math.Abs(s.CIHigh.Value-math.Exp(mean+half)) > 1e-3 {
		t.Errorf("%+v", s)
	}
	if s.SDWithin.Missing != "one trial in each boot" || !near(s.SDBetween, 1.581139) {
		t.Errorf("%+v", s)
	}
}

// Equal values would give an interval of no width, which a printed step of 0.1
// does not support.
func TestResolutionKeepsTheIntervalOpen(t *testing.T) {
	exact := Summarise([][]float64{{32}, {32}, {32}}, 0)
	printed := Summarise([][]float64{{32}, {32}, {32}}, 0.1)
	if !near(exact.CILow, 32) || !near(exact.CIHigh, 32) {
		t.Errorf("exact: %+v", exact)
	}
	if !(printed.CILow.Value < 31.95 && printed.CIHigh.Value > 32.05) {
		t.Errorf("printed: %+v", printed)
	}
}

func TestBootsAreTheUnit(t *testing.T) {
	s := Summarise([][]float64{{1, 1, 1, 1}, {4}}, 0)
	if !near(s.Median, 2.5) || !near(s.GeoMean, 2) || !near(s.Mean, 1.6) || s.Boots != 2 || s.Trials != 5 {
		t.Errorf("%+v", s)
	}
}

func TestZeroHasNoLogs(t *testing.T) {
	s := Summarise([][]float64{{0, 2}, {-1}}, 0)
	if s.GeoMean.Missing != "a value is 0 or negative" || s.CILow.OK() || !near(s.Median, 0) || !near(s.Min, -1) {
		t.Errorf("%+v", s)
	}
}

func TestNothingIsMissingNotZero(t *testing.T) {
	for _, boots := range [][][]float64{nil, {{}}, {{math.NaN()}, {math.Inf(1)}}} {
		s := Summarise(boots, 0)
		for _, n := range []Number{s.Median, s.GeoMean, s.CILow, s.CIHigh, s.SDBetween, s.SDWithin, s.Min, s.Max, s.Mean, s.SD} {
			if n.Missing != "no values" {
				t.Errorf("%v: %+v", boots, n)
			}
		}
	}
}

// No NaN leaves: JSON cannot carry one, and order holds.
func TestSummaryProperties(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(1, 1000), rapid.Just(math.NaN()), rapid.Just(math.Inf(-1)), rapid.Just(0.0))
	rapid.Check(t, func(t *rapid.T) {
		boots := rapid.SliceOf(rapid.SliceOf(value)).Draw(t, "boots")
		s := Summarise(boots, rapid.Float64Range(0, 1).Draw(t, "resolution"))
		b, err := json.Marshal(s)
		if err != nil || strings.Contains(string(b), "NaN") {
			t.Fatalf("%v: %s", err, b)
		}
		if s.Median.OK() && !(s.Min.Value <= s.Median.Value*(1+1e-9)+1e-300 || s.Min.Value <= s.Median.Value+math.Abs(s.Median.Value)*1e-9) {
			t.Fatalf("min %v over the median %v", s.Min, s.Median)
		}
		if s.CILow.OK() && s.CIHigh.OK() && s.CILow.Value > s.CIHigh.Value {
			t.Fatalf("interval upside down: %+v", s)
		}
		if g := s.GeoMean; g.OK() && (g.Value < s.Min.Value || g.Value > s.Max.Value || s.CILow.OK() && s.CILow.Value > g.Value || s.CIHigh.OK() && s.CIHigh.Value < g.Value) {
			t.Fatalf("geometric mean outside its values or its interval: %+v", s)
		}
	})
}

func TestQuantile(t *testing.T) {
	x := []float64{4, 1, 3, 2}
	for p, want := range map[float64]float64{0: 1, 0.5: 2.5, 0.25: 1.75, 1: 4} {
		if got := Quantile(x, p); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	if x[0] != 4 || !math.IsNaN(Quantile(nil, 0.5)) {
		t.Error("the input was changed, or nothing has a quantile")
	}
}

// A reader that takes the value and never looks for the reason finds no 0.
func TestNumberInJSON(t *testing.T) {
	for _, c := range []struct {
		n    Number
		want string
	}{
		{Num(0), `{"value":0}`}, {Num(1.5), `{"value":1.5}`}, {Missing("one boot"), `{"missing":"one boot"}`},
		{Num(math.NaN()), `{"missing":"not a finite number"}`},
	} {
		b, err := json.Marshal(c.n)
		var back Number
		if err != nil || string(b) != c.want || json.Unmarshal(b, &back) != nil || back != c.n {
			t.Errorf("%+v: %s %v, back %+v", c.n, b, err, back)
		}
	}
}
