package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sample is one side of a comparison: a value per boot, in the order of the boots.
type Sample struct {
	Values []float64
	// Session of each boot; nil: all in one. Boots are compared within sessions.
	Session    []int
	Resolution float64 // the step the tool printed with; 0: exact
	// NoRatio: a trial behind the values was 0 or negative. What has no logarithm
	// is not compared on logarithms because its boot's mean happens to have one.
	NoRatio bool
	// Order holds the sequence number of each boot in its lane; nil: not known.
	Order []int
}

// Scale on which two samples were compared.
type Scale string

// Scales.
const (
	Ratio      Scale = "ratio"      // of geometric means: every value is positive
	Difference Scale = "difference" // of means: some value is 0 or negative
)

// Comparison of a sample with its baseline. Change and its intervals are shares
// on the ratio scale (0.1 = the value is 10 % larger), else in the metric's unit.
// They are changes of the value, whichever direction is better.
type Comparison struct {
	Scale  Scale  `json:"scale"`
	Boots  [2]int `json:"boots"` // baseline, other: that entered
	Change Number `json:"change"`
	Low    Number `json:"ci95_low"`
	High   Number `json:"ci95_high"`
	Low90  Number `json:"ci90_low"` // for the test of equivalence
	High90 Number `json:"ci90_high"`
	// HalfWidth of the 95 % interval, as a share of the baseline. On the ratio
	// scale it is how far the upper end lies above the estimate.
	HalfWidth  Number `json:"half_width"`
	PT         Number `json:"p_t"`            // Welch's t, two-sided
	PU         Number `json:"p_u"`            // Mann-Whitney U, two-sided, exact up to ExactBoots
	P          Number `json:"p"`              // the larger
	Attainable Number `json:"p_attainable"`   // smallest P that so many boots can give
	DF         Number `json:"df"`             // Welch-Satterthwaite
	Sessions   int    `json:"sessions"`       // strata that held both sides
	Left       int    `json:"left_out"`       // boots of sessions that held one side only
	Note       string `json:"note,omitempty"` // what the numbers do not show

	Level   [2]Number `json:"level"`              // geometric means, or means on the difference scale
	Delta   Number    `json:"delta"`              // on the scale of the test: ln of the ratio, or the difference
	SE      Number    `json:"se"`                 // standard error of Delta
	Step    float64   `json:"step,omitempty"`     // the coarser Resolution of the two
	Dropped int       `json:"dropped,omitempty"`  // values that were no finite numbers
	MixedUp bool      `json:"mixed_up,omitempty"` // in each session all boots of the same side came first
}

// Compare compares v with base by their boots: Welch's t on logarithms, within
// sessions, and the exact Mann-Whitney U test as its witness. It judges nothing.
func Compare(base, v Sample) Comparison {
	p := pairUp(base, v)
	c := Comparison{Scale: p.scale, Boots: p.boots, Sessions: len(p.strata), Left: p.left,
		Dropped: p.dropped, Step: p.step, MixedUp: p.mixedUp()}
	c.notes(p)
	if len(p.strata) == 0 {
		c.none(p.why())
		return c
	}
	for side := range c.Level {
		c.Level[side] = p.level(side)
	}
	f := p.fit(c.Level)
	c.Delta = numOr(p.unscale(f.delta), "more than a number holds")
	c.Change = p.change(f.delta)
	c.Attainable = Num(attainable(p.strata))
	if f.why != "" {
		c.wide(f.why)
		return c
	}
	if f.note != "" {
		c.note(f.note)
	}
	c.intervals(p, f)
	c.PU = Num(uTest(p.strata))
	if c.PT.OK() {
		c.P = Num(math.Max(c.PT.Value, c.PU.Value))
	} else {
		c.P = c.PT
	}
	return c
}

// intervals and the p of Welch's t from a fit.
func (c *Comparison) intervals(p *pairs, f fit) {
	c.SE = numOr(p.unscale(f.se), "more than a number holds")
	switch {
	case !Num(f.se).OK() || !Num(f.delta).OK():
		c.wide("the step the values were printed with is too coarse for them")
		return
	case f.se == 0: // equal values, printed exactly
		c.Low, c.High, c.Low90, c.High90 = c.Change, c.Change, c.Change, c.Change
		c.HalfWidth, c.PT, c.DF = Num(0), Num(1), Missing("no variance")
		if f.delta != 0 {
			c.PT = Num(0)
		}
		c.note("the boots of each kernel gave equal values: no spread was seen")
		return
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: f.df}
	half, half90 := quantileT(0.975, f.df)*f.se, quantileT(0.95, f.df)*f.se
	c.Low, c.High = p.change(f.delta-half), p.change(f.delta+half)
	c.Low90, c.High90 = p.change(f.delta-half90), p.change(f.delta+half90)
	c.DF, c.PT = Num(f.df), Num(math.Min(1, 2*t.Survival(math.Abs(f.delta)/f.se)))
	c.HalfWidth = p.half(half, c.Level[0])
}

func (c *Comparison) notes(p *pairs) {
	if p.dropped > 0 {
		c.note(fmt.Sprintf("%s no finite number", count(p.dropped, "value was", "values were")))
	}
	if p.left > 0 && len(p.strata) > 0 {
		c.note(fmt.Sprintf("%s left out: of sessions that hold one of the kernels only", count(p.left, "boot is", "boots are")))
	}
	blocked := 0
	for _, s := range p.strata {
		if s.first() != 0 && min(len(s.z[0]), len(s.z[1])) > 1 {
			blocked++
		}
	}
	switch {
	case c.MixedUp:
		c.note("all boots of one kernel came before all of the other: order and kernel cannot be told apart")
	case blocked > 0:
		c.note(fmt.Sprintf("in %d of %d sessions all boots of one kernel came before all of the other", blocked, len(p.strata)))
	}
}

func (c *Comparison) note(s string) {
	if c.Note != "" {
		c.Note += "; "
	}
	c.Note += s
}

func (c *Comparison) none(why string) {
	m := Missing("%s", why)
	c.Change, c.Attainable, c.Delta = m, m, m
	c.Level = [2]Number{m, m}
	c.wide(why)
}

func (c *Comparison) wide(why string) {
	m := Missing("%s", why)
	c.Low, c.High, c.Low90, c.High90, c.HalfWidth, c.PT, c.PU, c.P, c.DF, c.SE = m, m, m, m, m, m, m, m, m, m
}

// mixedUp reports whether order and kernel cannot be told apart: in each session
// all boots of one side, the same in all sessions, were before all of the other.
func (p *pairs) mixedUp() bool {
	first := 0
	for i, s := range p.strata {
		dir := s.first()
		if dir == 0 || i > 0 && dir != first {
			return false
		}
		first = dir
	}
	return first != 0
}

// first is the side whose boots all came before all of the other: -1 the
// baseline, +1 the kernel, 0 neither or not known.
func (s *stratum) first() int {
	a, b := s.order[0], s.order[1]
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case slices.Max(a) < slices.Min(b):
		return -1
	case slices.Max(b) < slices.Min(a):
		return +1
	}
	return 0
}

// numOr is v, or missing for the reason given.
func numOr(v float64, why string) Number {
	if n := Num(v); n.OK() {
		return n
	}
	return Missing("%s", why)
}

// count is "1 boot", "3 boots".
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
