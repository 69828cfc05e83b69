package compare

import (
	"cmp"
	"fmt"
	"math"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// conclude gives a claim its verdict, its sentence, and what would settle it.
func (j *judging) conclude(c *claim) {
	verdict, text := j.verdict(c)
	c.Sentence = text
	if c.Primary {
		c.Verdict = verdict
		c.Sentence = string(verdict) + ": " + text
	}
	if c.a.declared && c.b.declared && c.hold == "" && c.Change.OK() {
		c.Sentence += "; " + c.onTrust()
		text += "; " + c.onTrust()
	}
	switch {
	case c.Primary && verdict == stats.Same, c.Primary && verdict == stats.NoEvidence:
		c.Sentence = text
		c.Moved = nil // nothing for it to go with
	case verdict == stats.Invalid, verdict == stats.DidNotBoot:
		c.Moved = nil
	case c.Primary && verdict == stats.Inconclusive && c.Change.OK() && c.hold == "":
		if o := j.ahead(c); o.Enough {
			c.More = o.More
		}
		c.MoreCommand = j.moreCommand(c)
	}
}

// onTrust says what a claim about declared boots rests on.
func (c *claim) onTrust() string {
	text := "on the word of whoever imported it, nothing of it is proven"
	if c.a.apart {
		text += ", and the order of the boots is not known"
	}
	return text
}

// verdict is the first that holds, in the order of the specification.
func (j *judging) verdict(c *claim) (stats.Verdict, string) {
	for _, s := range []*side{&c.b, &c.a} {
		if s.boot != nil {
			return stats.DidNotBoot, didNotBoot(s)
		}
	}
	for _, s := range []*side{&c.b, &c.a} {
		if s.invalid != "" {
			return stats.Invalid, fmt.Sprintf("%s on %s: %s", s.who(), c.Target, s.invalid)
		}
	}
	if why := c.noValues(); why != "" {
		return stats.Inconclusive, "n/a (" + why + ")"
	}
	if !c.Change.OK() {
		return stats.Inconclusive, "n/a (" + c.Change.Missing + ")"
	}
	if c.spoilt != "" {
		return stats.Invalid, fmt.Sprintf("%s; observed %s, %s", c.spoilt, c.observed(), c.bootsWords())
	}
	if c.hold != "" {
		text := fmt.Sprintf("observed %s, %s, but %s", c.observed(), c.bootsWords(), c.hold)
		if c.unproven {
			text = fmt.Sprintf("observed %s, %s, %s (%s), need %d proven ones of each%s", c.observed(), c.onFile(), c.whoseUnproven(), c.hold, j.rules.MinBoots, c.insideBoots())
		}
		if c.remedy != "" {
			text += "; " + c.remedy
		}
		return stats.Inconclusive, text
	}
	if c.each == "half" {
		return j.againstItself(c)
	}
	if !c.Primary {
		return "", fmt.Sprintf("observed %s, %s", c.observed(), c.bootsWords())
	}
	r := j.rules
	r.Effect = c.Effect
	v, _ := stats.Judge(c.asCase(), r)
	return v, j.explain(c, v)
}

// noValues says why a side has no values, or both.
func (c *claim) noValues() string {
	a, b := c.a.none, c.b.none
	switch {
	case b != "" && a == b && c.each != "half":
		return fmt.Sprintf("both %ss: %s", c.each, b)
	case b != "" && a != "" && a != b:
		return fmt.Sprintf("%s: %s; %s: %s", c.b.who(), b, c.a.who(), a)
	case b != "":
		return c.b.who() + ": " + b
	case a != "":
		return c.a.who() + ": " + a
	}
	return ""
}

func better(m workloads.Metric) stats.Better {
	if m.Better == workloads.LowerIsBetter {
		return stats.Lower
	}
	return stats.Higher
}

func didNotBoot(s *side) string {
	text := s.who()
	if s.boot.Stage != "" {
		text += " stopped at stage " + s.boot.Stage
	} else {
		text += " did not come up"
	}
	if s.boot.Reason != "" {
		text += " (" + s.boot.Reason + ")"
	}
	if l := lastLine(s.boot.LastLines); l != "" {
		text += fmt.Sprintf("; its console ends with %q", l)
	}
	return text
}

// explain says what follows from a verdict of the numbers.
func (j *judging) explain(c *claim, v stats.Verdict) string {
	seen := fmt.Sprintf("%s, %s", c.observed(), c.bootsWords())
	switch v {
	case stats.Same:
		return fmt.Sprintf("same within %s: %s", c.effectWords(), seen)
	case stats.NoEvidence:
		if c.Low.OK() && (c.Low.Value > 0 || c.High.Value < 0) && c.Comparison.Holm.Value <= j.rules.Alpha {
			return fmt.Sprintf("no practical difference shown: %s; less than %s is not called a difference", seen, c.effectWords())
		}
		return "no evidence of a difference: " + seen
	case stats.Inconclusive:
		return j.missing(c, seen)
	}
	return seen
}

// ahead is what more boots are likely to bring.
func (j *judging) ahead(c *claim) stats.Outlook {
	r := j.rules
	r.Effect = c.Effect
	return stats.Ahead(c.Comparison.Comparison, r, j.familySize)
}

// missing says what an inconclusive comparison lacks.
func (j *judging) missing(c *claim, seen string) string {
	have, need := min(c.Boots[0], c.Boots[1]), j.rules.MinBoots
	ahead := j.ahead(c)
	more := func(text string) string {
		if !ahead.Enough {
			return fmt.Sprintf("%s, and %d boots of each are not likely to do: find what makes the boots differ", text, have+ahead.More)
		}
		return fmt.Sprintf("%s, needs about %s of each", text, plural.Of(ahead.More, "more boot"))
	}
	switch {
	case have < need:
		text := fmt.Sprintf("observed %s, %s, need %d of each", c.observed(), c.onFile(), need)
		if c.Left > 0 {
			text += fmt.Sprintf("; %s of sessions that measured one kernel only cannot enter", plural.Of(c.Left, "more boot"))
		}
		return text + c.insideBoots()
	case !c.SE.OK() || !c.P.OK():
		return fmt.Sprintf("observed %s; no interval: %s", seen, cmp.Or(c.SE.Missing, c.P.Missing))
	case c.holmLeast.OK() && c.holmLeast.Value > j.rules.Alpha:
		return more(fmt.Sprintf("observed %s; among %s so few boots cannot decide", seen, plural.Of(j.familySize, "primary comparison")))
	case c.Low.Value > 0 || c.High.Value < 0:
		return more(fmt.Sprintf("observed %s; not clear enough among %s", seen, plural.Of(j.familySize, "primary comparison")))
	}
	return more(fmt.Sprintf("observed %s; the interval is wider than ±%s", seen, bare(j.rules.HalfWidth)))
}

// onFile says how many boots there are, in the words of somebody who counts.
func (c *claim) onFile() string {
	a, b := c.Boots[0], c.Boots[1]
	text := fmt.Sprintf("%s of %s and %d of %s on file", plural.Of(b, "boot"), c.b.name, a, c.a.name)
	if a == b {
		text = fmt.Sprintf("%s of each %s on file", plural.Of(a, "boot"), c.each)
	}
	return text
}

// insideBoots adds what single boots show.
func (c *claim) insideBoots() string {
	w := c.Within
	if w == nil || !w.T.OK() || !w.DF.OK() {
		return ""
	}
	what := "do not separate"
	if w.Separate {
		what = "separate"
	}
	return fmt.Sprintf("; inside the two boots the trials %s (%d against %d, Welch t = %s, df = %.1f), which says nothing of other boots",
		what, w.Trials[1], w.Trials[0], statistic(w.T.Value), w.DF.Value)
}

// whoseUnproven says which side's boots nobody proved.
func (c *claim) whoseUnproven() string {
	switch {
	case c.a.unproven != "" && c.b.unproven != "":
		return "none proven"
	case c.a.unproven != "":
		return "none of " + c.a.who() + " proven"
	}
	return "none of " + c.b.who() + " proven"
}

// statistic is a t to two places.
func statistic(t float64) string {
	if math.Abs(t) >= 1e4 {
		return fmt.Sprintf("%.3g", t)
	}
	return fmt.Sprintf("%.2f", t)
}

// within compares the trials of two single boots by Welch's t. The means are
// arithmetic, as the tools print them.
func within(a, b *side) *Within {
	if len(a.boots) != 1 || len(b.boots) != 1 {
		return nil
	}
	x, y := inside(a.boots[0]), inside(b.boots[0])
	if x.N < 2 || y.N < 2 {
		return nil
	}
	w := stats.Within(x, y)
	return &Within{Trials: [2]int{x.N, y.N}, T: w.T, DF: w.DF, P: w.P, Separate: w.P.OK() && w.P.Value <= separate}
}

// separate is the p of Within from which on the trials of two boots are called
// separate.
const separate = 0.05

// inside are the trials of one boot, or what the tool said of them.
func inside(b results.BootValues) stats.Moments {
	if r := b.Reported; r != nil && len(b.Values) == 1 {
		return stats.Moments{N: r.N, Mean: r.Value, SD: r.SD}
	}
	return stats.MomentsOf(b.Values)
}
