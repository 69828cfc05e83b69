package compare

import (
	"fmt"
	"math"

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
	switch {
	case c.Primary && verdict == stats.Same, c.Primary && verdict == stats.NoEvidence:
		c.Sentence = text
		c.Moved = nil // nothing for it to go with
	case verdict == stats.Invalid, verdict == stats.DidNotBoot:
		c.Moved = nil
	case c.Primary && verdict == stats.Inconclusive && c.Change.OK() && c.hold == "":
		c.More = j.more(c)
		c.MoreCommand = j.moreCommand(c)
	}
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
			return stats.Invalid, fmt.Sprintf("%s on %s: %s", s.name, c.Target, s.invalid)
		}
	}
	for _, s := range []*side{&c.b, &c.a} {
		if s.none != "" {
			return stats.Inconclusive, fmt.Sprintf("n/a (%s: %s)", s.name, s.none)
		}
	}
	if c.spoilt != "" {
		return stats.Invalid, fmt.Sprintf("%s; observed %s, %s", c.spoilt, c.observed(), c.bootsWords())
	}
	if c.hold != "" {
		text := fmt.Sprintf("observed %s, %s, but %s", c.observed(), c.bootsWords(), c.hold)
		if c.a.unproven != "" || c.b.unproven != "" {
			text = fmt.Sprintf("observed %s, %s; need %d proven boots of each%s", c.observed(), c.onFile(), j.rules.MinBoots, c.insideBoots())
			text += ": " + c.hold
		}
		if c.remedy != "" {
			text += "; " + c.remedy
		}
		return stats.Inconclusive, text
	}
	if c.Kernel == c.Baseline && j.state.Plan.Design.NoiseFloor {
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

func better(m workloads.Metric) stats.Better {
	if m.Better == workloads.LowerIsBetter {
		return stats.Lower
	}
	return stats.Higher
}

func didNotBoot(s *side) string {
	text := s.name
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

// missing says what an inconclusive comparison lacks.
func (j *judging) missing(c *claim, seen string) string {
	need := j.rules.MinBoots
	switch {
	case min(c.Boots[0], c.Boots[1]) < need:
		text := fmt.Sprintf("observed %s, %s, need %d of each", c.observed(), c.onFile(), need)
		if c.Left > 0 {
			text += fmt.Sprintf("; %s of sessions that measured one side only cannot enter", counted(c.Left, "boot", "boots"))
		}
		return text + c.insideBoots()
	case c.holmLeast.OK() && c.holmLeast.Value > j.rules.Alpha:
		n := j.enough(c)
		return fmt.Sprintf("observed %s; among so many primary comparisons %d boots of each cannot decide, %d can", seen, min(c.Boots[0], c.Boots[1]), n)
	}
	text := fmt.Sprintf("observed %s; the interval is wider than ±%s", seen, bare(j.rules.HalfWidth))
	switch n := j.more(c); {
	case n > 0:
		text += fmt.Sprintf(", about %s of each may settle it", counted(n, "more boot", "more boots"))
	case c.Scale == stats.Ratio:
		text += fmt.Sprintf(", and %d boots of each would not make it narrow: find what makes the boots differ", mostBoots)
	}
	return text
}

// onFile says how many boots there are, in the words of somebody who counts.
func (c *claim) onFile() string {
	a, b := c.Boots[0], c.Boots[1]
	if c.Left > 0 { // what is on file, not what entered
		a, b = len(c.a.boots), len(c.b.boots)
	}
	text := fmt.Sprintf("%s of %s and %d of %s on file", counted(b, "boot", "boots"), c.b.name, a, c.a.name)
	if a == b {
		text = fmt.Sprintf("%s of each %s on file", counted(a, "boot", "boots"), c.each)
	}
	return text
}

// insideBoots adds what single boots show.
func (c *claim) insideBoots() string {
	w := c.Within
	if w == nil || !w.T.OK() {
		return ""
	}
	what := "do not separate"
	if w.Separate {
		what = "separate"
	}
	return fmt.Sprintf(" (inside the two boots the trials %s: %d against %d, Welch t = %s, df = %.1f, which says nothing of other boots)",
		what, w.Trials[1], w.Trials[0], statistic(w.T.Value), w.DF.Value)
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
	if x.n < 2 || y.n < 2 {
		return nil
	}
	return welch(x, y)
}

// moments of the trials of one boot.
type moments struct {
	n        int
	mean, sd float64
}

func inside(b results.BootValues) moments {
	if r := b.Reported; r != nil && len(b.Values) == 1 {
		return moments{r.N, r.Value, r.SD}
	}
	s := stats.Summarise([][]float64{b.Values}, 0)
	if !s.SD.OK() || !s.Mean.OK() {
		return moments{n: min(1, s.Trials)}
	}
	return moments{s.Trials, s.Mean.Value, s.SD.Value}
}
