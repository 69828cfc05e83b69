package stats

import "math"

// Cost of measuring, in seconds.
type Cost struct {
	Boot  float64 // a boot with its settling and warm-up
	Trial float64 // one trial that counts
}

// Proposal is a design that a pilot suggests.
type Proposal struct {
	Repeat    int    // trials in each boot: 1 … 10
	Boots     int    // of each kernel
	Within    Number // coefficient of variation of trials inside a boot
	Between   Number // of boots, without what their trials add
	HalfWidth Number // that this design is expected to give
	Reached   bool   // HalfWidth is what was wanted; false: not even with Rules.MaxBoots
	Why       string // no proposal, or what it rests on
}

// Most trials inside one boot that a pilot proposes.
const maxRepeat = 10

// Pilot proposes repeat and boots from the raw trials of pilot boots, given by
// kernel, boot and trial (Kalibera and Jones, ISMM 2013, with the corrected
// T_i^2 = S_i^2 - S_(i-1)^2 / r_(i-1)). The half width wanted is r.HalfWidth;
// where the fewest boots give less than half of it, fewer trials than spend the
// time best do too. It needs a kernel with 2 boots, and a boot with 2 trials.
func Pilot(kernels [][][]float64, cost Cost, r Rules) Proposal {
	s1, s2, per, why := spreads(kernels)
	if why != "" {
		m := Missing("%s", why)
		return Proposal{Within: m, Between: m, HalfWidth: m, Why: why}
	}
	t2 := s2 - s1/per
	p := Proposal{Within: Num(math.Sqrt(s1)), Between: Num(math.Sqrt(math.Max(0, t2)))}
	minBoots, maxBoots := max(r.MinBoots, 2), max(r.maxBoots(), r.MinBoots, 2)
	switch {
	case s1 == 0:
		p.Repeat, p.Why = 1, "trials of one boot do not differ"
	case t2 <= 0:
		p.Repeat, p.Boots = maxRepeat, minBoots
		p.Why = "boots do not differ by more than their trials"
	default:
		p.Repeat = repeat(cost, s1/t2)
		p.Why = "boots differ"
	}
	cv := math.Sqrt(math.Max(0, t2) + s1/float64(p.Repeat))
	if p.Boots == 0 {
		for p.Boots = minBoots; p.Boots < maxBoots && K(p.Boots)*cv > math.Log1p(r.HalfWidth); p.Boots++ {
		}
	}
	for p.Repeat > 1 {
		fewer := math.Sqrt(math.Max(0, t2) + s1/float64(p.Repeat-1))
		if K(p.Boots)*fewer > math.Log1p(r.HalfWidth)/2 {
			break
		}
		p.Repeat, cv = p.Repeat-1, fewer
	}
	p.HalfWidth = numOr(math.Expm1(K(p.Boots)*cv), "more than a number holds")
	p.Reached = p.HalfWidth.OK() && p.HalfWidth.Value <= r.HalfWidth*(1+1e-12)
	return p
}

// repeat is the number of trials that spends the time best: ratio is the variance
// of trials over that of boots.
func repeat(c Cost, ratio float64) int {
	best := math.Ceil(math.Sqrt(c.Boot / c.Trial * ratio))
	if !(c.Boot > 0) || !(best > 1) {
		return 1
	}
	if !(c.Trial > 0) || best > maxRepeat {
		return maxRepeat
	}
	return int(best)
}

// spreads are the mean variance inside boots and the variance of boot means, on
// logs (or as parts of the mean), pooled over kernels, and the harmonic mean of
// the trials in a boot.
func spreads(kernels [][][]float64) (s1, s2, per float64, why string) {
	var ss1, df1, ss2, df2, inverse, boots float64
	for _, kernel := range kernels {
		var all, means []float64
		var ends []int
		for _, b := range kernel {
			if b = finite(b); len(b) > 0 {
				all = append(all, b...)
				ends = append(ends, len(all))
			}
		}
		z, none := shares(all, false)
		if none != "" {
			continue
		}
		from := 0
		for _, to := range ends {
			mean, ss := squares(z[from:to])
			means = append(means, mean)
			ss1, df1 = ss1+ss, df1+float64(to-from-1)
			inverse, boots = inverse+1/float64(to-from), boots+1
			from = to
		}
		_, ss := squares(means)
		ss2, df2 = ss2+ss, df2+float64(len(means)-1)
	}
	switch {
	case boots == 0:
		return 0, 0, 0, "no values, or a mean of 0"
	case df2 == 0:
		return 0, 0, 0, "one boot of each kernel: how boots differ is not known"
	case df1 == 0:
		return 0, 0, 0, "one trial in each boot: how trials differ is not known"
	}
	return ss1 / df1, ss2 / df2, boots / inverse, ""
}

// K turns the coefficient of variation of boot values into the half width of the
// 95 % interval of a ratio, with so many boots of each of two kernels: Student's t
// with 2 B - 2 degrees of freedom times sqrt(2/B). It needs 2 boots; +Inf below.
func K(boots int) float64 {
	if boots < 2 {
		return math.Inf(1)
	}
	return quantileT(0.975, float64(2*boots-2)) * math.Sqrt(2/float64(boots))
}

func (r Rules) maxBoots() int {
	if r.MaxBoots > 0 {
		return r.MaxBoots
	}
	return 15
}

// Narrow is the rule that ends a sweep with boots = "auto": it looks at the widths
// of intervals, and never at where they lie. Every width must be there and at most
// the wanted one. Widest is the index of the widest or of the first that is
// missing; -1 when there are none, which is not narrow.
func Narrow(wanted float64, widths ...Number) (narrow bool, widest int) {
	widest = -1
	for i, w := range widths {
		switch {
		case !w.OK():
			return false, i
		case widest < 0 || w.Value > widths[widest].Value:
			widest = i
		}
	}
	return widest >= 0 && widths[widest].Value <= wanted, widest
}
