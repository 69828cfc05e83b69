package stats

import (
	"math"
)

// Line is a straight line through values: what they gain with each step.
type Line struct {
	N      int
	Slope  Number // per step; a share where every value is positive (ln), else of the mean
	Low    Number // 95 %
	High   Number
	T      Number // missing where the values lie on the line exactly
	DF     Number
	P      Number // two-sided, that there is no slope
	Length float64
	Total  Number // Slope times Length: from the first to the last
}

// Trend is the least-squares line of a series of runs, one value each, the oldest
// first. What is no finite number is a run without a value: its place is kept.
func Trend(runs []float64) Line {
	var x, y []float64
	for i, v := range runs {
		if Num(v).OK() {
			x, y = append(x, float64(i)), append(y, v)
		}
	}
	z, why := shares(y, false)
	if why != "" {
		return noLine(len(y), why)
	}
	centre(x)
	centre(z)
	return slope(x, z, len(z)-2)
}

// shares turns values into logarithms relative to the first, or, where a value is
// 0 or negative or they have no ratio, into parts of their mean.
func shares(y []float64, noRatio bool) ([]float64, string) {
	if len(y) == 0 {
		return nil, "no values"
	}
	p := pairs{scale: Ratio}
	largest := 0.0
	for _, v := range y {
		largest = math.Max(largest, math.Abs(v))
		if v <= 0 || noRatio {
			p.scale = Difference
		}
	}
	_, p.exp = math.Frexp(largest)
	z, mean := make([]float64, len(y)), 0.0
	for i, v := range y {
		z[i] = p.raw(v)
		mean += z[i] / float64(len(y))
	}
	if p.scale == Ratio {
		first := z[0]
		for i := range z {
			z[i] -= first
		}
		return z, ""
	}
	if math.Abs(mean) < 1e-12 {
		return nil, "the mean is 0"
	}
	for i := range z {
		z[i] /= math.Abs(mean)
	}
	return z, ""
}

func centre(x []float64) {
	mean := 0.0
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for i := range x {
		x[i] -= mean
	}
}

func noLine(n int, why string) Line {
	m := Missing("%s", why)
	return Line{N: n, Slope: m, Low: m, High: m, T: m, DF: m, P: m, Total: m}
}

// slope through the origin of centred x and z.
func slope(x, z []float64, df int) Line {
	sxx, sxz, szz := 0.0, 0.0, 0.0
	low, high := math.Inf(1), math.Inf(-1)
	for i := range x {
		sxx, sxz, szz = sxx+x[i]*x[i], sxz+x[i]*z[i], szz+z[i]*z[i]
		low, high = math.Min(low, x[i]), math.Max(high, x[i])
	}
	if sxx == 0 {
		return noLine(len(x), "fewer than 2 places")
	}
	b := sxz / sxx
	l := Line{N: len(x), Slope: Num(b), Length: high - low}
	l.Total = Num(b * l.Length)
	if df < 1 {
		m := Missing("a line through so few values fits always")
		l.Low, l.High, l.T, l.DF, l.P = m, m, m, m, m
		return l
	}
	rest := 0.0
	for i := range x {
		d := z[i] - b*x[i]
		rest += d * d
	}
	l.DF = Num(float64(df))
	if rest <= 1e-20*szz || szz == 0 { // what is left is rounding
		l.Low, l.High, l.T, l.P = l.Slope, l.Slope, Missing("no scatter about the line"), Num(0)
		if szz == 0 {
			l.P = Num(1)
		}
		return l
	}
	se := math.Sqrt(rest / float64(df) / sxx)
	half := quantileT(0.975, float64(df)) * se
	l.Low, l.High = Num(b-half), Num(b+half)
	l.T, l.P = Num(b/se), pOfT(b/se, float64(df))
	return l
}

// Drifted is a line through what the kernels do not explain, in the order of the
// boots.
type Drifted struct {
	Line
	// Clear: |t| above 2.6, and as rare without drift as 2.6 is for many boots; for
	// one degree of freedom every fourth |t| is above 2.6.
	Clear bool
	Large bool // from the first to the last boot it makes more than the effect
	// Flag: Clear, or Large with |t| above 2 and p at most 0.05 (which is more with
	// a handful of boots). Large alone would be flagged in a
	// third of the runs that do not drift at all (the simulation shows it).
	Flag bool
}

// Drift looks for a slope over Sample.Order that all samples of a cell's target
// have in common: ordinary least squares with a mean of each kernel and session
// of its own, so that neither is taken for drift. Samples without Order, and with
// fewer than 2 boots in a session, say nothing. Effect is a share.
func Drift(effect float64, samples ...Sample) Drifted {
	var x, z []float64
	groups := 0
	for _, s := range samples {
		if len(s.Order) != len(s.Values) {
			continue
		}
		groups += driftOf(s, &x, &z)
	}
	if len(x)-groups < 2 {
		return Drifted{Line: noLine(len(x), "too few boots whose order is known")}
	}
	d := Drifted{Line: slope(x, z, len(x)-groups-1)}
	if !d.Slope.OK() {
		return d
	}
	first, last := math.Inf(1), math.Inf(-1)
	for _, s := range samples {
		for i, o := range s.Order {
			if i < len(s.Values) && Num(s.Values[i]).OK() {
				first, last = math.Min(first, float64(o)), math.Max(last, float64(o))
			}
		}
	}
	d.Length = last - first
	d.Total = Num(d.Slope.Value * d.Length)
	exact := !d.T.OK() && d.P.OK() && d.P.Value == 0
	d.Clear = exact || d.T.OK() && math.Abs(d.T.Value) > 2.6 && d.P.Value <= 0.01
	d.Large = math.Abs(d.Total.Value) > math.Log1p(effect)
	d.Flag = d.Clear || d.Large && d.T.OK() && math.Abs(d.T.Value) > 2 && d.P.Value <= 0.05
	return d
}

// driftOf adds the centred boots of each session of a sample.
func driftOf(s Sample, x, z *[]float64) (groups int) {
	var values []float64
	var at []int
	for i, v := range s.Values {
		if Num(v).OK() {
			values, at = append(values, v), append(at, i)
		}
	}
	share, why := shares(values, s.NoRatio)
	if why != "" {
		return 0
	}
	type group struct{ x, z []float64 }
	bySession := map[int]*group{}
	var order []int
	for j, i := range at {
		key := 0
		if i < len(s.Session) {
			key = s.Session[i]
		}
		if bySession[key] == nil {
			bySession[key] = &group{}
			order = append(order, key)
		}
		g := bySession[key]
		g.x, g.z = append(g.x, float64(s.Order[i])), append(g.z, share[j])
	}
	for _, key := range order {
		g := bySession[key]
		if len(g.x) < 2 {
			continue
		}
		centre(g.x)
		centre(g.z)
		*x, *z = append(*x, g.x...), append(*z, g.z...)
		groups++
	}
	return groups
}
