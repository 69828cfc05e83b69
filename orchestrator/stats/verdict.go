package stats

import "math"

// Case is a comparison and what the family it belongs to makes of it.
type Case struct {
	Comparison
	Better Better
	// Holm is P after Holm's correction over the family, HolmAttainable the same
	// for the smallest P that its boots can give.
	Holm, HolmAttainable Number
}

// Judge gives the verdict of a case that no hard validity rule spoils, and the
// reason in a few words where the verdict needs one.
func Judge(c Case, r Rules) (Verdict, string) {
	if !c.Change.OK() {
		return Inconclusive, c.Change.Missing
	}
	if min(c.Boots[0], c.Boots[1]) < r.MinBoots {
		return Inconclusive, "too few boots"
	}
	effect := math.Log1p(r.Effect)
	low, high := math.Log1p(c.Low.Value), math.Log1p(c.High.Value)
	holds := low <= 0 && high >= 0
	significant := c.Holm.OK() && c.Holm.Value <= r.Alpha && !holds
	switch {
	case !significant && c.HolmAttainable.OK() && c.HolmAttainable.Value > r.Alpha:
		return Inconclusive, "so many comparisons need more boots"
	case significant && math.Abs(math.Log1p(c.Change.Value)) >= effect:
		if (c.Change.Value > 0) == (c.Better == Higher) {
			return Faster, ""
		}
		return Slower, ""
	case math.Log1p(c.Low90.Value) >= -effect && math.Log1p(c.High90.Value) <= effect:
		return Same, ""
	case c.HalfWidth.Value > r.HalfWidth && holds:
		return Inconclusive, "the interval is too wide"
	case significant:
		return NoEvidence, "no practical difference shown"
	}
	return NoEvidence, ""
}

// Holm corrects the p-values of a family (Holm 1979); a missing one is not of
// the family and stays missing.
func Holm(p []Number) []Number {
	out := make([]Number, len(p))
	copy(out, p)
	var order []int
	for i := range p {
		if p[i].OK() {
			order = append(order, i)
		}
	}
	sortBy(order, func(i int) float64 { return p[i].Value })
	worst := 0.0
	for rank, i := range order {
		worst = math.Max(worst, math.Min(1, p[i].Value*float64(len(order)-rank)))
		out[i] = Num(worst)
	}
	return out
}
