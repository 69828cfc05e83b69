package compare

import (
	"fmt"
	"math"

	"kernsweep/orchestrator/stats"
)

// halves splits the boots of an A/A run in the order ABBA, so that a drift is in
// both.
func halves(s side) (a, b side) {
	a, b = s, s
	a.boots, a.strata, b.boots, b.strata = nil, nil, nil, nil
	for i, x := range s.boots {
		h := &a
		if i%4 == 1 || i%4 == 2 {
			h = &b
		}
		h.boots, h.strata = append(h.boots, x), append(h.strata, s.strata[i])
	}
	if s.none == "" && len(b.boots) == 0 {
		b.none = "one boot cannot be compared with itself"
	}
	b.left, b.spoilt, b.bootsFailed, b.lost = 0, nil, 0, 0 // told once
	return a, b
}

// againstItself judges a kernel against itself: what is found is noise, and its
// width is the floor below which the device shows nothing.
func (j *judging) againstItself(c *claim) (stats.Verdict, string) {
	seen := fmt.Sprintf("%s, %s", c.observed(), c.bootsWords())
	if need := j.rules.MinBoots; !c.SE.OK() || min(c.Boots[0], c.Boots[1]) < need {
		return stats.Inconclusive, fmt.Sprintf("no noise floor yet: observed %s, need %d in each half, %d boots of %s", seen, need, 2*need, c.Kernel)
	}
	v, _ := stats.Judge(c.asCase(), j.rules)
	alarm := v == stats.Faster || v == stats.Slower
	floor := "no noise floor as a share (a value is 0 or negative)"
	if c.Scale == stats.Ratio && c.HalfWidth.OK() {
		width := c.HalfWidth.Value
		if alarm { // then the interval lies off 0, and its far end is how far the device strays
			width = math.Max(math.Abs(c.Low.Value), math.Abs(c.High.Value))
		}
		c.NoiseFloor = &width
		floor = "noise floor ±" + bare(width)
	}
	text := fmt.Sprintf("%s: %s against itself %s", floor, c.Kernel, seen)
	switch {
	case alarm:
		return stats.Invalid, "ALARM, the device does not agree with itself: one kernel differs from itself by more than chance, so such a difference between kernels means nothing; " + text
	case v == stats.Same:
		return v, text
	}
	return stats.NoEvidence, text
}

func (c *claim) asCase() stats.Case {
	return stats.Case{Comparison: c.Comparison.Comparison, Better: better(c.Metric), Holm: c.Comparison.Holm, HolmAttainable: c.holmLeast}
}
