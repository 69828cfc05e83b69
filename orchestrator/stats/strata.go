package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// stratum is a session that holds both sides. z is on the scale of the test,
// relative to a common origin: what is equal is exactly 0.
type stratum struct {
	z     [2][]float64
	order [2][]int
}

// pairs is the input of a comparison: both sides, by session.
type pairs struct {
	scale         Scale
	strata        []stratum
	boots         [2]int
	left, dropped int
	step          float64
	steps         [2]float64
	lonely        [2]int     // boots of sessions that hold one side only
	min, max      [2]float64 // of the values that entered
	origin        float64    // ln on the ratio scale; else in units of 2^exp
	exp           int        // of the unit in which differences are computed: sums of huge values are none
}

// pairUp drops what is no number, and groups the rest by session.
func pairUp(base, v Sample) *pairs {
	p := &pairs{step: math.Max(goodStep(base.Resolution), goodStep(v.Resolution)), scale: Ratio,
		steps: [2]float64{goodStep(base.Resolution), goodStep(v.Resolution)}}
	sides := [2]Sample{base, v}
	if len(base.Values) > 0 && len(v.Values) > 0 && (len(base.Session) == 0 || len(v.Session) == 0) {
		sides[0].Session, sides[1].Session = nil, nil // not known of one side: all in one
	}
	n := map[int]*[2]int{}
	for side, s := range sides {
		for i, x := range s.Values {
			if !Num(x).OK() {
				p.dropped++
				continue
			}
			c := n[s.session(i)]
			if c == nil {
				c = new([2]int)
				n[s.session(i)] = c
			}
			c[side]++
		}
	}
	for _, c := range n {
		if min(c[0], c[1]) == 0 {
			p.lonely[0], p.lonely[1] = p.lonely[0]+c[0], p.lonely[1]+c[1]
		}
	}
	p.left = p.lonely[0] + p.lonely[1]
	p.enter(sides, n)
	return p
}

func (s *Sample) session(i int) int {
	if i < len(s.Session) {
		return s.Session[i]
	}
	return 0
}

// goodStep is a resolution that can be used.
func goodStep(q float64) float64 {
	if !(q > 0) || math.IsInf(q, 0) {
		return 0
	}
	return q
}

// enter puts the boots of sessions that hold both sides on the scale of the test.
func (p *pairs) enter(sides [2]Sample, n map[int]*[2]int) {
	each := func(do func(side, i int, v float64)) {
		for side, s := range sides {
			for i, v := range s.Values {
				if c := n[s.session(i)]; Num(v).OK() && min(c[0], c[1]) > 0 {
					do(side, i, v)
				}
			}
		}
	}
	largest := 0.0
	each(func(side, _ int, v float64) {
		if p.boots[side] == 0 {
			p.min[side], p.max[side] = v, v
		}
		p.boots[side]++
		p.min[side], p.max[side] = math.Min(p.min[side], v), math.Max(p.max[side], v)
		largest = math.Max(largest, math.Abs(v))
	})
	if p.boots[0] == 0 {
		return
	}
	if math.Min(p.min[0], p.min[1]) <= 0 || sides[0].NoRatio || sides[1].NoRatio {
		p.scale = Difference
		_, p.exp = math.Frexp(largest)
	}
	p.origin = p.raw(p.min[0])
	at := map[int]int{}
	each(func(side, i int, v float64) {
		sess := sides[side].session(i)
		row, ok := at[sess]
		if !ok {
			row = len(p.strata)
			at[sess] = row
			p.strata = append(p.strata, stratum{z: [2][]float64{make([]float64, 0, n[sess][0]), make([]float64, 0, n[sess][1])}})
		}
		s := &p.strata[row]
		s.z[side] = append(s.z[side], p.raw(v)-p.origin)
		if len(sides[side].Order) == len(sides[side].Values) {
			s.order[side] = append(s.order[side], sides[side].Order[i])
		}
	})
}

func (p *pairs) raw(v float64) float64 {
	if p.scale == Ratio {
		return logOf(v)
	}
	return math.Ldexp(v, -p.exp)
}

// unscale gives a distance in the unit of the test: ln, or the metric's unit.
func (p *pairs) unscale(d float64) float64 {
	if p.scale == Ratio {
		return d
	}
	return math.Ldexp(d, p.exp)
}

// change turns a distance on the test's scale into a Change.
func (p *pairs) change(d float64) Number {
	if p.scale == Ratio {
		return numOr(math.Expm1(d), "more than a number holds")
	}
	return numOr(math.Ldexp(d, p.exp), "more than a number holds")
}

// half turns a half width on the test's scale into a share of the baseline.
func (p *pairs) half(h float64, level Number) Number {
	if p.scale == Ratio {
		return numOr(math.Expm1(h), "more than a number holds")
	}
	if level.Value == 0 {
		return Missing("the baseline's mean is 0")
	}
	return numOr(h/math.Abs(math.Ldexp(level.Value, -p.exp)), "more than a number holds")
}

// why there is nothing to compare.
func (p *pairs) why() string {
	switch {
	case p.lonely[0] > 0 && p.lonely[1] > 0:
		return "no session holds boots of both kernels"
	case p.lonely[0] > 0:
		return "no boot of the kernel has a value"
	case p.lonely[1] > 0:
		return "no boot of the baseline has a value"
	}
	return "no values"
}

// level of a side: the mean of its z, as a value.
func (p *pairs) level(side int) Number {
	sum := 0.0
	for _, s := range p.strata {
		for _, z := range s.z[side] {
			sum += z
		}
	}
	m := sum / float64(p.boots[side])
	if p.scale == Ratio {
		m = p.min[0] * math.Exp(m) // origin is the logarithm of p.min[0]
	} else {
		m = math.Ldexp(p.origin+m, p.exp)
	}
	return Num(min(max(m, p.min[side]), p.max[side]))
}

// fit is an estimate on the scale of the test; why says that it has no error.
type fit struct {
	delta, se, df float64
	why, note     string
}

// fit estimates the difference within sessions. Sessions weigh n m / (n+m);
// variances are pooled within sessions, for each side. One session is plain
// Welch. Where sessions are many and small, the agreement of their differences
// is the better measure of error: least squares with an effect of each session
// (for sessions of one boot each: the paired t).
func (p *pairs) fit(level [2]Number) fit {
	var ss, df, share, q [2]float64
	var W, D float64
	weights, diffs := make([]float64, len(p.strata)), make([]float64, len(p.strata))
	for i, s := range p.strata {
		var mean [2]float64
		for side, z := range s.z {
			m, sq := squares(z)
			mean[side], ss[side] = m, ss[side]+sq
			df[side] += float64(len(z) - 1)
		}
		na, nb := float64(len(s.z[0])), float64(len(s.z[1]))
		w := na * nb / (na + nb)
		weights[i], diffs[i] = w, mean[1]-mean[0]
		W, D = W+w, D+w*diffs[i]
		share[0], share[1] = share[0]+w*w/na, share[1]+w*w/nb
	}
	f := fit{delta: D / W}
	for side := range q {
		q[side] = p.rounding(side, level[side])
	}
	between, dfB := 0.0, float64(len(p.strata)-1)
	for i, w := range weights {
		between += w * (diffs[i] - f.delta) * (diffs[i] - f.delta)
	}
	switch least := min(df[0], df[1]); {
	case least < dfB:
		f.df = df[0] + df[1] + dfB
		f.se = math.Sqrt(((ss[0]+ss[1]+between)/f.df + (q[0]+q[1])/2) / W)
		f.note = "few boots in each session: both kernels are taken to spread alike"
		return f
	case least == 0:
		f.why = "one boot on a side"
		return f
	}
	va, vb := (ss[0]/df[0]+q[0])*share[0]/(W*W), (ss[1]/df[1]+q[1])*share[1]/(W*W)
	f.se = math.Sqrt(va + vb)
	if f.se > 0 {
		r := va / (va + vb)
		f.df = 1 / (r*r/df[0] + (1-r)*(1-r)/df[1])
	}
	f.note = disagree(between, dfB, (ss[0]+ss[1])/(df[0]+df[1])+(q[0]+q[1])/2, df[0]+df[1])
	return f
}

// rounding is the variance q^2/12 of a step q, on the scale of the test. It
// keeps equal printed values from having no variance.
func (p *pairs) rounding(side int, level Number) float64 {
	q := p.steps[side]
	if p.scale == Ratio {
		q /= level.Value
	} else {
		q = math.Ldexp(q, -p.exp)
	}
	return q * q / 12
}

// disagree is a note when the sessions' differences spread more than their boots
// explain (F test at 1 %).
func disagree(between, df1, within, df2 float64) string {
	if df1 < 1 || within <= 0 {
		return ""
	}
	f := distuv.F{D1: df1, D2: df2}
	if p := f.Survival(between / df1 / within); p < 0.01 {
		return "the sessions disagree about the difference (p " + pText(p) + "): something else changed between them"
	}
	return ""
}

// squares gives the mean and the sum of squared distances from it.
func squares(z []float64) (mean, ss float64) {
	for _, v := range z {
		mean += v
	}
	mean /= float64(len(z))
	for _, v := range z {
		ss += (v - mean) * (v - mean)
	}
	if ss > 0 && slices.Min(z) == slices.Max(z) {
		return z[0], 0 // equal values: the mean was rounded
	}
	return mean, ss
}
