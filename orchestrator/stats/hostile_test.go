package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func wild() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.Float64Range(1, 1000), rapid.Float64Range(99, 101),
		rapid.SampledFrom([]float64{0, -1, 1e300, -1e300, math.MaxFloat64, 1e-300, 5e-324, math.NaN(), math.Inf(1), math.Inf(-1), 100, 100, 100}))
}

func anySample(t *rapid.T, name string, value *rapid.Generator[float64]) Sample {
	s := Sample{Values: rapid.SliceOfN(value, 0, 8).Draw(t, name), Resolution: rapid.SampledFrom([]float64{0, 0.1, 1e-320, 1e300, math.NaN(), -1}).Draw(t, name+" step")}
	n := len(s.Values)
	if rapid.Bool().Draw(t, name+" sessions") {
		s.Session = rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(t, name+" session")
	}
	if rapid.Bool().Draw(t, name+" ordered") {
		s.Order = rapid.SliceOfN(rapid.IntRange(0, 20), n, n).Draw(t, name+" order")
	}
	return s
}

// Whatever goes in: JSON can carry what comes out, the interval holds the
// estimate, p is one, and a verdict has its reason.
func TestNothingPoisonsAComparison(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anySample(t, "base", wild()), anySample(t, "kernel", wild())
		c := Compare(a, b)
		text, err := json.Marshal(c)
		if err != nil || strings.Contains(string(text), "NaN") {
			t.Fatalf("%v: %s", err, text)
		}
		for name, p := range map[string]Number{"t": c.PT, "u": c.PU, "p": c.P, "attainable": c.Attainable} {
			if p.OK() && (p.Value < 0 || p.Value > 1) {
				t.Fatalf("p %s: %v", name, p.Value)
			}
		}
		if c.P.OK() && c.P.Value < c.Attainable.Value*(1-1e-9) {
			t.Fatalf("p %v is below what is attainable, %v", c.P.Value, c.Attainable.Value)
		}
		if c.Low.OK() && c.High.OK() && c.Change.OK() {
			tiny := 1e-12 * (1 + math.Abs(c.Change.Value))
			if c.Low.Value > c.Change.Value+tiny || c.High.Value < c.Change.Value-tiny || c.Low.Value > c.Low90.Value+tiny {
				t.Fatalf("the interval lacks its estimate: %+v", c)
			}
		}
		for _, better := range []Better{Higher, Lower} {
			v, why := Judge(Family([]Case{{Comparison: c, Better: better}})[0], Defaults())
			if v == "" || (why == "") != (v == Faster || v == Slower) || strings.Contains(why, "NaN") || strings.Contains(why, "Inf") {
				t.Fatalf("%q because of %q", v, why)
			}
		}
		if n := Ahead(c, Defaults(), 3).More; n < 0 || n > 15 {
			t.Fatalf("%d more boots", n)
		}
		d := Drift(0.01, a, b)
		if _, err := json.Marshal(d); err != nil {
			t.Fatal(err)
		}
	})
}

// Sides swapped: the ratio is inverted, and no p changes.
func TestSwappedSides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(900, 1100), func(i int) float64 { return float64(i) / 10 })
		a, b := anySample(t, "base", value), anySample(t, "kernel", value)
		a.Resolution, b.Resolution = 0.1, 0.1
		x, y := Compare(a, b), Compare(b, a)
		same := func(what string, p, q Number, tolerance float64) {
			if p.OK() != q.OK() || p.OK() && math.Abs(p.Value-q.Value) > tolerance {
				t.Fatalf("%s: %+v and %+v swapped", what, p, q)
			}
		}
		inverse := func(n Number) Number {
			if !n.OK() {
				return n
			}
			return Num(1/(1+n.Value) - 1)
		}
		same("change", x.Change, inverse(y.Change), 1e-9)
		same("low", x.Low, inverse(y.High), 1e-6)
		same("high90", x.High90, inverse(y.Low90), 1e-6)
		same("half width", x.HalfWidth, y.HalfWidth, 1e-6*(1+math.Abs(y.HalfWidth.Value)))
		same("p of t", x.PT, y.PT, 1e-9)
		same("p of U", x.PU, y.PU, 1e-9)
		if x.MixedUp != y.MixedUp || x.Boots != [2]int{y.Boots[1], y.Boots[0]} {
			t.Fatalf("%+v and %+v", x, y)
		}
	})
}

// The unit of a metric decides nothing.
func TestScaleInvariance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(0, 40), func(i int) float64 { return float64(i) + 80*float64(i%2) })
		a, b := anySample(t, "base", value), anySample(t, "kernel", value)
		a.Resolution, b.Resolution = 1, 1
		k := math.Ldexp(1, rapid.IntRange(-900, 900).Draw(t, "exponent"))
		scaled := func(s Sample) Sample {
			s.Values = append([]float64(nil), s.Values...)
			for i := range s.Values {
				s.Values[i] *= k
			}
			s.Resolution *= k
			return s
		}
		x, y := Compare(a, b), Compare(scaled(a), scaled(b))
		unit := 1.0
		if x.Scale == Difference {
			unit = k
		}
		for what, pair := range map[string][2]Number{"change": {x.Change, y.Change}, "low": {x.Low, y.Low}, "high90": {x.High90, y.High90}} {
			if pair[0].OK() != pair[1].OK() || pair[0].OK() && math.Abs(pair[0].Value-pair[1].Value/unit) > 1e-8*(1+math.Abs(pair[0].Value)) {
				t.Fatalf("%s: %+v", what, pair)
			}
		}
		v, _ := Judge(Case{Comparison: x, Better: Lower}, Defaults())
		if w, _ := Judge(Case{Comparison: y, Better: Lower}, Defaults()); v != w || math.Abs(x.P.Value-y.P.Value) > 1e-8 {
			t.Fatalf("%s, scaled %s", v, w)
		}
	})
}

func TestExtremeSizes(t *testing.T) {
	at := func(level float64) []float64 {
		return []float64{level, 1.01 * level, 0.99 * level, 1.005 * level, 0.995 * level}
	}
	for _, level := range []float64{1, 1e300, 1e-300, 1.5e308, 2e-308} {
		c := Compare(Sample{Values: at(level)}, Sample{Values: at(level * 1.1)})
		if v, why := Judge(Case{Comparison: c, Better: Higher}, Defaults()); v != Faster || math.Abs(c.Change.Value-0.1) > 1e-9 {
			t.Errorf("%g: %s (%s) %+v", level, v, why, c)
		}
		zeros := Compare(Sample{Values: append(at(level), 0)}, Sample{Values: append(at(1.1*level), 0)})
		if zeros.Scale != Difference || !zeros.P.OK() || math.Abs(zeros.Change.Value/level-0.1*5/6) > 1e-9 {
			t.Errorf("%g with zeros: %+v", level, zeros)
		}
		s := Summarise(inBoots(append(at(level), at(level)...), 2), 0)
		if math.Abs(s.Mean.Value/level-1) > 1e-9 || !s.SD.OK() || s.SD.Value <= 0 || math.Abs(s.GeoMean.Value/level-1) > 1e-3 || !s.CIHigh.OK() {
			t.Errorf("%g: %+v", level, s)
		}
	}
	far := Compare(Sample{Values: at(1e-300)}, Sample{Values: at(1e300)})
	if v, why := Judge(Case{Comparison: far, Better: Higher}, Defaults()); v != Faster || far.Change.OK() {
		t.Errorf("%s (%s) %+v", v, why, far)
	}
	denormal := Compare(Sample{Values: []float64{5e-324, 1e-323, 5e-324, 1e-323}}, Sample{Values: []float64{5e-324, 5e-324, 1e-323, 1e-323}})
	if !denormal.P.OK() || math.Abs(denormal.Delta.Value) > 1e-9 {
		t.Errorf("%+v", denormal)
	}
	coarse := Compare(Sample{Values: []float64{1e-300, 2e-300, 1e-300, 2e-300}, Resolution: 0.1}, Sample{Values: []float64{3e-300, 2e-300, 1e-300, 2e-300}, Resolution: 0.1})
	if v, why := Judge(Case{Comparison: coarse, Better: Higher}, Defaults()); v != Inconclusive || strings.Count(why, "too coarse") != 1 {
		t.Errorf("%s: %s", v, why)
	}
}

func TestBadValuesAreDroppedAndCounted(t *testing.T) {
	good := Compare(Sample{Values: []float64{100, 101, 99, 100}}, Sample{Values: []float64{103, 104, 102, 103}})
	c := Compare(Sample{Values: []float64{100, math.NaN(), 101, 99, 100}}, Sample{Values: []float64{103, 104, math.Inf(1), 102, 103, math.Inf(-1)}})
	if c.Dropped != 3 || c.Boots != [2]int{4, 4} || c.P != good.P || c.Change != good.Change || c.Note != "3 values were no finite number" {
		t.Errorf("%+v", c)
	}
}

func TestSessionsThatHoldOneSideOnly(t *testing.T) {
	alone := Compare(Sample{Values: []float64{100, 101, 99}, Session: []int{1, 1, 1}}, Sample{Values: []float64{103, 104, 102}, Session: []int{2, 2, 2}})
	if alone.Change.Missing != "no session holds boots of both kernels" || alone.Left != 6 || alone.Sessions != 0 || alone.Boots != [2]int{} {
		t.Errorf("%+v", alone)
	}
	part := Compare(Sample{Values: []float64{100, 101, 99, 90}, Session: []int{1, 1, 1, 3}}, Sample{Values: []float64{103, 104, 102, 200, 201}, Session: []int{1, 1, 1, 2, 2}})
	if part.Left != 3 || part.Sessions != 1 || part.Boots != [2]int{3, 3} || !strings.Contains(part.Note, "3 boots are left out") {
		t.Errorf("%+v", part)
	}
	unknown := Compare(Sample{Values: []float64{100, 101, 99}}, Sample{Values: []float64{103, 104, 102}, Session: []int{2, 2, 3}})
	if unknown.Sessions != 1 || unknown.Boots != [2]int{3, 3} {
		t.Errorf("sessions of one side are not known: %+v", unknown)
	}
}

func TestSessionsThatDisagree(t *testing.T) {
	s := []int{1, 1, 1, 1, 2, 2, 2, 2}
	c := Compare(Sample{Values: []float64{100, 100.5, 99.5, 100.2, 100, 100.4, 99.6, 100.1}, Session: s},
		Sample{Values: []float64{105, 105.5, 104.5, 105.2, 95, 95.4, 94.6, 95.1}, Session: s})
	if !strings.Contains(c.Note, "the sessions disagree") {
		t.Errorf("%+v", c)
	}
}

// A million values in one go: seconds and megabytes, no exact permutations.
func TestMillionValues(t *testing.T) {
	x, y := normals(1_000_000, 100, 1), normals(999_999, 100.05, 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := Compare(Sample{Values: x}, Sample{Values: y})
	s := Summarise(inBoots(x, 1_000_000), 0.1)
	runtime.ReadMemStats(&after)
	if step := ChangePoint(x, rand.New(rand.NewPCG(1, 1))); !step.P.OK() || step.At == 0 {
		t.Errorf("%+v", step)
	}
	if c.P.Value > 1e-6 || math.Abs(c.Change.Value-0.0005) > 1e-4 || s.Trials != 1_000_000 {
		t.Errorf("%+v %+v", c, s.Trials)
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 150 {
		t.Errorf("%d MB", mb)
	}
}
