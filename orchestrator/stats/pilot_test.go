package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// By hand: two boots of two trials, ln x = 0, 0.02 and 0.04, 0.06. S1^2 = 2e-4,
// means 0.01 and 0.05, S2^2 = 8e-4, T2^2 = 8e-4 - 2e-4 / 2 = 7e-4; a boot costs
// 60 s, a trial 5 s: sqrt(12 * 2/7) = 1.85, so 2 trials.
func TestPilotByHand(t *testing.T) {
	x := func(z ...float64) (out []float64) {
		for _, v := range z {
			out = append(out, math.Exp(v))
		}
		return out
	}
	p := Pilot([][][]float64{{x(0, 0.02), x(0.04, 0.06)}}, Cost{Boot: 60, Trial: 5}, Rules{HalfWidth: 0.03, MinBoots: 4, MaxBoots: 20})
	close9(t, "within", p.Within, math.Sqrt(2e-4))
	close9(t, "between", p.Between, math.Sqrt(7e-4))
	cv := math.Sqrt(8e-4)
	if p.Repeat != 2 || p.Boots != 9 || K(9)*cv > math.Log(1.03) || K(8)*cv < math.Log(1.03) || !p.Reached {
		t.Errorf("%+v (%v %v)", p, K(8)*cv, K(9)*cv)
	}
}

func TestPilotLimits(t *testing.T) {
	rules := Defaults()
	for name, c := range map[string]struct {
		kernels     [][][]float64
		cost        Cost
		repeat      int
		boots       int
		reached, ok bool
	}{
		"boots do not matter":  {[][][]float64{{{100, 101, 99}, {99, 100, 101}}}, Cost{60, 5}, 10, 4, true, true},
		"trials do not differ": {[][][]float64{{{100, 100}, {101, 101}, {99, 99}}}, Cost{60, 5}, 1, 5, false, true},
		"nothing differs":      {[][][]float64{{{100, 100}, {100, 100}}}, Cost{60, 5}, 1, 4, true, true},
		"far too noisy":        {[][][]float64{{{100, 101}, {150, 151}, {80, 81}}}, Cost{60, 5}, 1, 15, false, true},
		"trials cost nothing":  {[][][]float64{{{100, 101}, {103, 104}, {98, 99}}}, Cost{60, 0}, 10, 15, false, true},
		"boots cost nothing":   {[][][]float64{{{100, 101}, {103, 104}, {98, 99}}}, Cost{0, 5}, 1, 15, false, true},
		"one boot":             {[][][]float64{{{100, 101}}}, Cost{60, 5}, 0, 0, false, false},
		"one trial each":       {[][][]float64{{{100}, {101}}}, Cost{60, 5}, 0, 0, false, false},
		"nothing":              {nil, Cost{60, 5}, 0, 0, false, false},
		"zeros":                {[][][]float64{{{0, 0}, {0, 0}}}, Cost{60, 5}, 0, 0, false, false},
	} {
		p := Pilot(c.kernels, c.cost, rules)
		if name == "trials do not differ" {
			c.boots = p.Boots // whatever reaches the width
			c.reached = p.Reached
		}
		if p.Repeat != c.repeat || p.Boots != c.boots || p.Reached != c.reached || p.HalfWidth.OK() != c.ok || (p.Why == "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// What a pilot proposes is what the measurement then shows.
func TestSimulationPilot(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261130, 8))
	w := world{boots: 3, repeat: 5, bootSD: 0.008, trialSD: 0.01}
	reached, n := 0, 400
	for range n {
		w.boots, w.repeat = 3, 5
		w.draw(rng)
		p := Pilot([][][]float64{w.baseRaw, w.otherRaw}, Cost{Boot: 60, Trial: 10}, Defaults())
		w.boots, w.repeat = p.Boots, p.Repeat
		if c := Compare(w.draw(rng)); c.HalfWidth.Value <= 0.0125 {
			reached++
		}
	}
	sheet{t}.row("pilot of 3 boots, 1 % wanted: the design it proposes gives 1.25 % or better", share(reached, n), 0.6, 1)
}

func TestMore(t *testing.T) {
	compare := func(base, v []float64) Comparison { return Compare(Sample{Values: base}, Sample{Values: v}) }
	ref := []float64{100, 100.4, 99.8, 100.1, 99.7}
	for name, c := range map[string]struct {
		c      Comparison
		family int
		low    int
		high   int
	}{
		"settled: faster":          {compare(ref, []float64{103, 103.4, 102.8, 103.1, 102.7}), 1, 0, 0},
		"settled: same":            {compare(ref, []float64{100.1, 100.3, 99.9, 100, 99.8}), 6, 0, 0},
		"family asks for more":     {compare(ref, []float64{103, 103.4, 102.8, 103.1, 102.7}), 10, 1, 1},
		"3 against 3":              {compare([]float64{23, 22.9, 22.9}, []float64{32, 31.9, 31.9}), 1, 1, 1},
		"1 against 1":              {compare([]float64{23}, []float64{32}), 1, 3, 3},
		"nothing":                  {compare(nil, nil), 1, 4, 4},
		"nothing, in a family":     {compare(nil, nil), 6, 5, 5},
		"wide":                     {compare([]float64{100, 101, 99, 100.5, 99.5}, []float64{100.2, 101.2, 99.2, 100.7, 99.7}), 1, 1, 5},
		"so wide that none help":   {compare([]float64{100, 140, 70, 90, 130}, []float64{102, 141, 72, 93, 128}), 1, 10, 10},
		"already at the most":      {compare(normals(15, 100, 20), normals(16, 100, 20)), 1, 0, 0},
		"too big to need narrow":   {compare([]float64{100, 110, 95, 104}, []float64{150, 163, 139, 151}), 6, 1, 3},
		"equal, exactly, too few":  {compare([]float64{7, 7}, []float64{7, 7}), 1, 3, 3},
		"zeros on the other scale": {compare([]float64{0, 0, 0, 0, 1}, []float64{0, 1, 0, 0, 0}), 1, 1, 10},
	} {
		if got := Ahead(c.c, Defaults(), c.family).More; got < c.low || got > c.high {
			t.Errorf("%s: %d more, want %d … %d", name, got, c.low, c.high)
		}
	}
	o := Ahead(compare([]float64{100, 140, 70, 90, 130}, []float64{102, 141, 72, 93, 128}), Defaults(), 1)
	if o.Enough || o.Settled || o.More != 10 || o.HalfWidth.Value < 0.1 {
		t.Errorf("%+v", o)
	}
	blocked := Compare(Sample{Values: ref, Order: []int{0, 1, 2, 3, 4}}, Sample{Values: ref, Order: []int{5, 6, 7, 8, 9}})
	if got := Ahead(blocked, Defaults(), 1).More; got != 4 {
		t.Errorf("blocked: %d more", got)
	}
}

// Boots that More asks for, in a session of their own, settle most comparisons.
func TestSimulationMore(t *testing.T) {
	rng := rand.New(rand.NewPCG(20261130, 9))
	asked, settledThen := 0, 0
	for range 500 {
		w := standard()
		w.boots, w.effect = 4, 0.03*rng.Float64()
		a, b := w.draw(rng)
		o := Ahead(Compare(a, b), Defaults(), 1)
		if !o.Enough {
			continue
		}
		asked++
		w.boots = o.More
		x, y := w.draw(rng)
		for i := range x.Values {
			a.Values, a.Session, a.Order = append(a.Values, x.Values[i]), append(a.Session, 2), append(a.Order, 100+x.Order[i])
			b.Values, b.Session, b.Order = append(b.Values, y.Values[i]), append(b.Session, 2), append(b.Order, 100+y.Order[i])
		}
		if Ahead(Compare(a, b), Defaults(), 1).Settled {
			settledThen++
		}
	}
	sheet{t}.row("4 boots, and those asked for then: settled", share(settledThen, asked), 0.5, 1)
}

func TestNarrow(t *testing.T) {
	for name, c := range map[string]struct {
		w      []Number
		narrow bool
		widest int
	}{
		"all":     {[]Number{Num(.005), Num(.01), Num(.002)}, true, 1},
		"one not": {[]Number{Num(.005), Num(.011)}, false, 1},
		"missing": {[]Number{Num(.005), Missing("one boot"), Num(.5)}, false, 1},
		"none":    {nil, false, -1},
	} {
		if n, i := Narrow(0.01, c.w...); n != c.narrow || i != c.widest {
			t.Errorf("%s: %v %d", name, n, i)
		}
	}
}

func TestCellWidth(t *testing.T) {
	s := Summarise([][]float64{{98}, {99}, {100}, {101}, {102}}, 0)
	if w := s.HalfWidth(0); !w.OK() || math.Abs(w.Value-math.Expm1(2.776445*0.0158129/math.Sqrt(5))) > 1e-5 {
		t.Errorf("%+v", w)
	}
	zero := Summarise([][]float64{{0}, {0}}, 0)
	mixed := Summarise([][]float64{{1}, {-1}}, 0)
	some := Summarise([][]float64{{0}, {2}}, 0)
	one := Summarise([][]float64{{5}}, 0)
	if w := zero.HalfWidth(0); !w.OK() || w.Value != 0 {
		t.Errorf("%+v", w)
	}
	if mixed.HalfWidth(0).OK() || one.HalfWidth(0).OK() || some.HalfWidth(0).Value < 10 {
		t.Errorf("%+v %+v %+v", mixed.HalfWidth(0), one.HalfWidth(0), some.HalfWidth(0))
	}
}

// Averages that a tool printed: 5 runs, 89.302 (0.0396232).
func TestReportedAverages(t *testing.T) {
	s := Summarise([][]float64{{89.302}}, 0)
	s.Reported(Moments{N: 5, SD: 0.0396232})
	if s.Averages != 1 || s.Trials != 5 || s.Boots != 1 || !near(s.SD, 0.0396232) || !near(s.SDWithin, 0.0396232) || s.Min.OK() || s.Mean.Value != 89.302 {
		t.Errorf("%+v", s)
	}
	// 4, 6 (mean 5, sd sqrt 2) and 7, 9, 11 (mean 9, sd 2): all five have mean 7.4, sd 2.70185.
	two := Summarise([][]float64{{5}, {9}}, 0)
	two.Reported(Moments{N: 2, SD: math.Sqrt2}, Moments{N: 3, SD: 2})
	if !near(two.Mean, 7.4) || !near(two.SD, 2.701851) || !near(two.SDWithin, math.Sqrt(10.0/3)) || two.Trials != 5 {
		t.Errorf("%+v", two)
	}
	raw := Summarise([][]float64{{5, 6}}, 0)
	raw.Reported(Moments{N: 9, SD: 1})
	if raw.Averages != 0 || raw.Trials != 2 || !raw.Min.OK() {
		t.Errorf("raw trials were taken for an average: %+v", raw)
	}
}

func TestWithinHostile(t *testing.T) {
	for name, c := range map[string][2]Moments{
		"one":      {{1, 5, 0}, {5, 6, 1}},
		"equal":    {{5, 5, 0}, {5, 6, 0}},
		"no value": {{5, math.NaN(), 1}, {5, 6, 1}},
	} {
		if w := Within(c[0], c[1]); w.T.OK() || w.DF.OK() || w.P.OK() {
			t.Errorf("%s: %+v", name, w)
		}
	}
	if w := Within(Moments{5, 1e308, 1e306}, Moments{5, -1e308, 1e306}); !w.P.OK() || w.P.Value > 1e-6 {
		t.Errorf("%+v", w)
	}
	if m := MomentsOf([]float64{1.7e308, 1.7e308, 1.6e308, math.NaN()}); m.N != 3 || math.Abs(m.Mean/1.6666667e308-1) > 1e-6 || !Num(m.SD).OK() {
		t.Errorf("%+v", m)
	}
	if m := MomentsOf([]float64{4e-324, 8e-324, 1.2e-323}); m.Mean < 5e-324 || m.SD <= 0 {
		t.Errorf("%+v", m)
	}
}
