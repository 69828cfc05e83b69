package stats

import (
	"cmp"
	"fmt"
	"math"
)

// Case is a comparison, as Compare made it, and what the family it belongs to
// makes of it.
type Case struct {
	Comparison
	Better Better
	// Holm is P after Holm's correction over the family, HolmAttainable the same
	// if this comparison had its smallest attainable p and the others stayed.
	// Family fills both; without it a case is a family of its own.
	Holm, HolmAttainable Number
}

// Judge gives the verdict of a case that no hard validity rule spoils and whose
// kernels booted, by the first rule that fits, and the reason with its figures
// ("" for faster and slower: the figures are those of the comparison).
func Judge(c Case, r Rules) (Verdict, string) {
	if !c.Delta.OK() {
		return Inconclusive, c.Delta.Missing
	}
	v := c.view(r)
	if min(c.Boots[0], c.Boots[1]) < r.MinBoots {
		return Inconclusive, fmt.Sprintf("observed %s, %s; at least %d of each are needed", v.seen, c.sides(), r.MinBoots)
	}
	if !c.SE.OK() || !c.P.OK() {
		return Inconclusive, fmt.Sprintf("observed %s, no interval: %s", v.seen, cmp.Or(c.SE.Missing, c.P.Missing))
	}
	if c.MixedUp {
		return Inconclusive, fmt.Sprintf("observed %s, but all boots of one kernel came before all of the other: order and kernel cannot be told apart", v.seen)
	}
	holm := math.Max(c.Holm.Value, c.P.Value) // never below P, whatever a caller left out
	best := math.Max(c.HolmAttainable.Value, c.Attainable.Value)
	holds := v.low <= 0 && v.high >= 0
	significant := holm <= r.Alpha && !holds
	switch {
	case best > r.Alpha:
		return Inconclusive, c.unattainable(best, r)
	case holds && v.half > v.wanted:
		return Inconclusive, fmt.Sprintf("observed %s, %s: %s", v.seen, v.interval95(&c.Comparison), v.tooWide)
	case significant && math.Abs(v.delta) >= v.effect:
		if (v.delta > 0) == (c.Better == Higher) {
			return Faster, ""
		}
		return Slower, ""
	case v.low90 >= -v.effect && v.high90 <= v.effect:
		return Same, fmt.Sprintf("the 90 %% interval %s to %s lies within ±%s", v.text(c.Low90), v.text(c.High90), v.bound)
	case holds:
		return NoEvidence, fmt.Sprintf("observed %s, %s holds 0 and is narrow enough, but the 90 %% interval does not lie within ±%s",
			v.seen, v.interval95(&c.Comparison), v.bound)
	case significant:
		return NoEvidence, fmt.Sprintf("no practical difference shown: observed %s is below the smallest effect of interest, %s, but the 90 %% interval reaches %s",
			v.seen, v.bound, v.text(further(c.Low90, c.High90)))
	}
	return Inconclusive, fmt.Sprintf("observed %s, %s leaves 0 out, but p %s%s is above %s", v.seen, v.interval95(&c.Comparison), pText(holm), corrected(holm, c.P.Value), pText(r.Alpha))
}

// view is a comparison and the rules on the scale of the test.
type view struct {
	scale                           Scale
	delta, low, high, low90, high90 float64
	half, effect, wanted            float64
	seen, bound, tooWide            string
}

// view puts the thresholds on the scale of the test. On the difference scale a
// share means one of the baseline's mean; where that is 0 no share exists, and
// what the tool can print apart (its step) is the smallest difference of
// interest, any difference at all if it printed exactly.
func (c *Comparison) view(r Rules) view {
	v := view{scale: c.Scale, delta: c.Delta.Value, effect: math.Log1p(r.Effect), wanted: math.Log1p(r.HalfWidth), bound: percent(r.Effect)}
	if c.Scale == Difference {
		level := math.Abs(c.Level[0].Value)
		v.effect, v.wanted = r.Effect*level, r.HalfWidth*level
		if level == 0 {
			v.effect, v.wanted = c.Step, c.Step
		}
		v.bound = figure(v.effect)
	}
	v.seen = v.signed(c.Change)
	if !c.SE.OK() {
		return v
	}
	t, t90 := 0.0, 0.0
	if c.DF.OK() && c.DF.Value > 0 {
		t, t90 = quantileT(0.975, c.DF.Value), quantileT(0.95, c.DF.Value)
	}
	v.half = t * c.SE.Value
	v.low, v.high = v.delta-v.half, v.delta+v.half
	v.low90, v.high90 = v.delta-t90*c.SE.Value, v.delta+t90*c.SE.Value
	v.tooWide = fmt.Sprintf("half width %s where %s is wanted", percent(math.Expm1(v.half)), percent(r.HalfWidth))
	if c.Scale == Difference {
		v.tooWide = fmt.Sprintf("half width %s where %s is wanted", figure(v.half), figure(v.wanted))
	}
	return v
}

func (v *view) interval95(c *Comparison) string {
	return fmt.Sprintf("95 %% interval %s to %s", v.text(c.Low), v.text(c.High))
}

// signed is a change for the eye: "+39.2 %", or "+0.35" in the metric's unit.
func (v *view) signed(n Number) string {
	switch {
	case !n.OK():
		return "a change of " + n.Missing
	case v.scale == Ratio && n.Value >= 10: // beyond +1000 % a factor reads better
		return fmt.Sprintf("a factor of %.3g", 1+n.Value)
	case v.scale == Ratio:
		return sign(n.Value) + percent(math.Abs(n.Value))
	}
	return sign(n.Value) + figure(math.Abs(n.Value))
}

func (v *view) text(n Number) string {
	if !n.OK() {
		return "beyond measure"
	}
	return v.signed(n)
}

// sides is "3 boots of the baseline and 1 of the kernel".
func (c *Comparison) sides() string {
	return fmt.Sprintf("%s of the baseline and %d of the kernel", count(c.Boots[0], "boot", "boots"), c.Boots[1])
}

func (c *Case) unattainable(best float64, r Rules) string {
	more := 1
	for more < 100 && afterwards(best, more) > r.Alpha {
		more++
	}
	v := c.view(r)
	return fmt.Sprintf("observed %s; %s can give p %s at best%s, and %s is needed: %d more of each would do",
		v.seen, c.sides(), pText(best), corrected(best, c.Attainable.Value), pText(r.Alpha), more)
}

func corrected(p, raw float64) string {
	if p > raw {
		return " after correction over the family"
	}
	return ""
}

func further(a, b Number) Number {
	if !b.OK() || a.OK() && math.Abs(a.Value) > math.Abs(b.Value) {
		return a
	}
	return b
}

func sign(v float64) string {
	if v < 0 {
		return "-"
	}
	return "+"
}

// percent of a share with one decimal, more where that would show nothing.
func percent(share float64) string {
	switch p := 100 * share; {
	case math.IsInf(p, 0):
		return "beyond measure"
	case p != 0 && math.Abs(p) < 0.05:
		return fmt.Sprintf("%.1g %%", p)
	case math.Abs(p) >= 1e5:
		return fmt.Sprintf("%.3g %%", p)
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}

func figure(v float64) string {
	if math.IsInf(v, 0) {
		return "beyond measure"
	}
	return fmt.Sprintf("%.3g", v)
}

func pText(p float64) string { return fmt.Sprintf("%.2g", p) }
