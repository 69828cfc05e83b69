package stats

import "math"

// Outlook is what further boots are likely to bring.
type Outlook struct {
	More      int    // further boots of each kernel; 0: none needed, or none allowed
	Settled   bool   // no more are needed
	Enough    bool   // More is likely to settle it
	HalfWidth Number // expected then, as a share of the baseline
}

// Ahead looks for the fewest boots with which the answer is likely (8 in 10) to
// be one: enough for a verdict at all, their smallest attainable p within alpha
// for a family of that many comparisons, and either an interval that is narrow
// enough or a difference that stands clear if it is what it seems. It corrects
// with Bonferroni's factor, which is Holm's at its hardest.
func Ahead(c Comparison, r Rules, family int) Outlook {
	m := float64(max(1, family))
	if settled(c, r, m) {
		return Outlook{Settled: true, HalfWidth: c.HalfWidth}
	}
	limit := r.maxBoots() - max(c.Boots[0], c.Boots[1])
	o := Outlook{HalfWidth: c.HalfWidth}
	for n := 1; n <= limit; n++ {
		o.More = n
		half, likely := c.with(n, r, m)
		o.HalfWidth = half
		if likely {
			o.Enough = true
			return o
		}
	}
	return o
}

func settled(c Comparison, r Rules, m float64) bool {
	if !c.Delta.OK() || !c.SE.OK() || !c.P.OK() || min(c.Boots[0], c.Boots[1]) < r.MinBoots || c.MixedUp {
		return false
	}
	if c.Attainable.Value*m > r.Alpha {
		return false
	}
	v := c.view(r)
	clear := c.P.Value*m <= r.Alpha && (v.low > 0 || v.high < 0)
	return v.half <= v.wanted && (clear || v.low <= 0 && v.high >= 0) || clear && math.Abs(v.delta) >= v.effect
}

// with n more boots of each kernel, in a session of their own: the half width to
// expect, and whether they are likely enough.
func (c *Comparison) with(n int, r Rules, m float64) (half Number, likely bool) {
	a, b := c.Boots[0]+n, c.Boots[1]+n
	p := 2.0 // of no boots at all
	if c.Attainable.OK() {
		p = c.Attainable.Value
	}
	enough := min(a, b) >= r.MinBoots && afterwards(p, n)*m <= r.Alpha
	if c.MixedUp { // what is there tells nothing, and adds nothing
		return c.HalfWidth, n >= r.MinBoots && Attainable(n, n)*m <= r.Alpha
	}
	if !c.Delta.OK() || !c.SE.OK() || !c.DF.OK() { // no spread is known, or there is none
		return c.HalfWidth, enough
	}
	v := c.view(r)
	old := 1/float64(c.Boots[0]) + 1/float64(c.Boots[1])
	se := c.SE.Value * math.Sqrt((1/float64(a)+1/float64(b))/old)
	df := math.Max(c.DF.Value, 1) + 1.6*float64(n-1) // Welch's is between n - 1 and twice that
	h := quantileT(0.975, df) * se
	half = Missing("the baseline's mean is 0")
	switch level := math.Abs(c.Level[0].Value); {
	case c.Scale == Ratio:
		half = numOr(math.Expm1(h), "more than a number holds")
	case level > 0:
		half = numOr(h/level, "more than a number holds")
	}
	stands := math.Abs(v.delta) >= v.effect && se > 0 &&
		math.Abs(v.delta)/se >= quantileT(1-r.Alpha/2/m, df)+quantileT(0.8, df)
	return half, enough && (h <= v.wanted || stands)
}

// afterwards is the smallest p that can be reached where p can be reached now,
// and a session of n boots of each kernel is added.
func afterwards(p float64, n int) float64 { return p * math.Exp(-lnChoose(n, n)) }
