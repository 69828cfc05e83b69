package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// exp(t.test(g)$conf.int), R.
func TestOverallIsTOverBlocks(t *testing.T) {
	var gains []Gain
	for block, g := range []float64{.03, .021, .044, .035} {
		gains = append(gains, Gain{block + 1, "iperf", "tcp", g + 0.01}, Gain{block + 1, "iperf", "udp", g - 0.02}, Gain{block + 1, "kernbench", "half", g + 0.005})
	}
	o := OverallOf(gains)
	close9(t, "gain", o.Gain, 1.033033893-1)
	close9(t, "low", o.Low, 1.017358843-1)
	close9(t, "high", o.High, 1.048950458-1)
	if o.Blocks != 4 || o.Left != 0 || !slices.Equal(o.Families, []string{"iperf", "kernbench"}) {
		t.Errorf("%+v", o)
	}
	short := OverallOf(append(gains, Gain{5, "iperf", "tcp", 0.5}, Gain{6, "iperf", "udp", math.NaN()}))
	if short.Left != 2 || short.Gain != o.Gain {
		t.Errorf("blocks without every cell entered: %+v", short)
	}
	if one := OverallOf(gains[:3]); !one.Gain.OK() || one.Low.Missing != "one block" {
		t.Errorf("%+v", one)
	}
	if none := OverallOf(nil); none.Gain.OK() || none.High.OK() {
		t.Errorf("%+v", none)
	}
	if g, ok := GainOf(100, 90, Lower); !ok || math.Abs(g-math.Log(100.0/90)) > 1e-12 {
		t.Errorf("%v %v", g, ok)
	}
	if _, ok := GainOf(0, 90, Lower); ok {
		t.Error("a gain over 0")
	}
}

// summary(lm(log(y) ~ x)), confint(): R.
func TestTrend(t *testing.T) {
	l := Trend([]float64{100, 101.5, 102.2, 104.1, 104.0, 106.3})
	close9(t, "slope", l.Slope, 0.01133977419)
	close9(t, "t", l.T, 9.481216802)
	close9(t, "p", l.P, 0.000690484973)
	close9(t, "low", l.Low, 0.00801907588653)
	close9(t, "high", l.High, 0.0146604724923)
	gap := Trend([]float64{100, math.NaN(), 102, 103})
	if gap.N != 3 || gap.Length != 3 || !gap.T.OK() {
		t.Errorf("%+v", gap)
	}
	for name, c := range map[string]struct {
		runs  []float64
		slope bool
		p     bool
	}{"none": {nil, false, false}, "one": {[]float64{3}, false, false}, "two": {[]float64{3, 4}, true, false}, "level": {[]float64{3, 3, 3}, true, true},
		"zeros": {[]float64{0, 0, 0}, false, false}, "some zero": {[]float64{0, 1, 2, 3.5}, true, true}, "huge": {[]float64{1e308, 1.5e308, -1e307}, true, true}} {
		l := Trend(c.runs)
		if l.Slope.OK() != c.slope || l.P.OK() != c.p || l.T.OK() && math.IsNaN(l.T.Value) {
			t.Errorf("%s: %+v", name, l)
		}
	}
	if l := Trend([]float64{3, 3, 3}); l.P.Value != 1 || l.Slope.Value != 0 {
		t.Errorf("%+v", l)
	}
}

// summary(lm(z ~ order + kernel)), R; values are exp(z).
func TestDriftIsBesideTheKernels(t *testing.T) {
	z := []float64{.01, .02, .018, .03, .035, .028, .05, .041}
	var s [2]Sample
	for i, side := range []int{0, 1, 1, 0, 0, 1, 1, 0} {
		s[side].Values, s[side].Order = append(s[side].Values, math.Exp(z[i])), append(s[side].Order, i+1)
	}
	d := Drift(0.01, s[0], s[1])
	close9(t, "slope", d.Slope, 0.004785714286)
	close9(t, "t", d.T, 4.63300931)
	close9(t, "p", d.P, 0.005668346837)
	if !d.Flag || !d.Clear || !d.Large || d.Length != 7 {
		t.Errorf("%+v", d)
	}
	if d := Drift(0.01, Sample{Values: []float64{1, 2, 3}}); d.Flag || d.Slope.OK() {
		t.Errorf("order not known: %+v", d)
	}
}

func TestOutliers(t *testing.T) {
	for name, c := range map[string]struct {
		x    []float64
		step float64
		want []int
	}{
		"one":            {[]float64{100, 101, 99, 100.5, 130, 99.5}, 0, []int{4}},
		"none":           {[]float64{100, 101, 99, 100.5, 102, 99.5}, 0, nil},
		"beside equals":  {[]float64{7, 7, 7, 7, 9}, 0, []int{4}},
		"one step off":   {[]float64{7, 7, 7, 7, 7.1}, 0.1, nil},
		"beside zeros":   {[]float64{0, 0, 0, 0, 3}, 0, []int{4}},
		"too few":        {[]float64{1, 1, 1, 900}, 0, nil},
		"no numbers too": {[]float64{100, math.NaN(), 101, 99, 100.5, math.Inf(1), 130}, 0, []int{6}},
		"huge":           {[]float64{1e308, 1.01e308, 0.99e308, 1e308, -1e308, 1e308}, 0, []int{4}},
		"nothing":        {nil, 0, nil},
	} {
		if got := Outliers(c.x, c.step); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWarming(t *testing.T) {
	cold := [][]float64{{90, 100, 101, 99}, {91, 99, 100, 100.5}, {100, 99, 101, 100}}
	if w := Warming(cold, 0); !w.Warming || w.Lower != 2 || w.Boots != 3 {
		t.Errorf("%+v", w)
	}
	for name, boots := range map[string][][]float64{
		"both sides":  {{90, 100, 101, 99}, {110, 99, 100, 100.5}, {100, 99, 101, 100}},
		"two trials":  {{90, 100}, {90, 100}},
		"one boot":    {{90, 100, 101, 99}},
		"equal":       {{5, 5, 5}, {5, 5, 5}},
		"nothing":     nil,
		"half of all": {{90, 100, 101, 99}, {100, 99, 101, 100}},
	} {
		if w := Warming(boots, 0); w.Warming {
			t.Errorf("%s: %+v", name, w)
		}
	}
	if w := Warming([][]float64{{5.1, 5, 5}, {5.1, 5, 5}}, 0.1); w.Warming {
		t.Errorf("one printed step: %+v", w)
	}
}

func TestChangePoint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var x []float64
	for i := range 60 {
		level := 50.0
		if i >= 23 {
			level = 53
		}
		x = append(x, level+rng.NormFloat64())
	}
	c := ChangePoint(x, rng)
	if !c.Found || c.At < 21 || c.At > 25 || math.Abs(c.Before.Value-50) > 1 || math.Abs(c.After.Value-53) > 1 {
		t.Errorf("%+v", c)
	}
	for name, x := range map[string][]float64{"level": slices.Repeat([]float64{4}, 30), "noise": normals(30, 100, 1), "short": {1, 1, 1, 9, 9, 9}, "no numbers": slices.Repeat([]float64{math.NaN()}, 20)} {
		if c := ChangePoint(x, rng); c.Found {
			t.Errorf("%s: %+v", name, c)
		}
	}
	long := append(slices.Repeat([]float64{1e300, 1.1e300}, 3000), slices.Repeat([]float64{1.4e300, 1.5e300}, 3000)...)
	if c := ChangePoint(long, rng); !c.Found || math.Abs(float64(c.At)-6000) > 12 {
		t.Errorf("%+v", c)
	}
}

// The table of precision: half width of a ratio = K times the cv of boots.
func TestPrecisionTable(t *testing.T) {
	for b, want := range map[int]float64{2: 4.30, 3: 2.27, 4: 1.73, 5: 1.46, 6: 1.29, 8: 1.07, 10: .94, 15: .75, 20: .64} {
		if got := K(b); math.Abs(got-want) > 0.005 {
			t.Errorf("%d boots: %.4f, want %.2f", b, got, want)
		}
	}
	for n, want := range map[[2]int]float64{{2, 2}: .333, {3, 3}: .1, {3, 4}: .057, {3, 5}: .036, {4, 4}: .0286, {4, 5}: .0159, {5, 5}: .0079, {6, 6}: .0022, {2, 8}: .044} {
		if got := Attainable(n[0], n[1]); math.Abs(got-want) > 0.0005 {
			t.Errorf("%v: %.4f, want %.4f", n, got, want)
		}
	}
}

// Beside so few boots as these a steep line is nothing rare.
func TestDriftOfFewBootsIsNotClear(t *testing.T) {
	a := Sample{Values: []float64{100, 100.02}, Order: []int{1, 4}}
	b := Sample{Values: []float64{101, 101.01}, Order: []int{2, 3}}
	if d := Drift(0.01, a, b); !d.T.OK() || d.T.Value < 2.6 || d.Flag {
		t.Errorf("2 boots of each kernel: %+v", d)
	}
}

// Where boots hardly differ beside what is wanted, no trial is asked for that
// changes nothing.
func TestPilotAsksForNoIdleTrials(t *testing.T) {
	boots := [][][]float64{{{100, 100.03, 100.01}, {100.02, 100.01, 99.99}, {100.01, 100.04, 100}}}
	r := Defaults()
	r.HalfWidth = 0.03
	if p := Pilot(boots, Cost{Boot: 20, Trial: 1}, r); p.Repeat != 1 || p.Boots != r.MinBoots || !p.Reached {
		t.Errorf("for ±3 %%: %+v", p)
	}
	r.HalfWidth = 0.0002
	if p := Pilot(boots, Cost{Boot: 20, Trial: 1}, r); p.Repeat < 2 {
		t.Errorf("for ±0.02 %%: %+v", p)
	}
}
