package stats

import (
	"math"

	"github.com/aclements/go-moremath/stats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Sample is one side of a comparison: a value per boot, in the order of the boots.
type Sample struct {
	Values []float64
	// Session of each boot; nil: all in one. Boots are compared within sessions.
	Session    []int
	Resolution float64 // the step the tool printed with; 0: exact
}

// Scale on which two samples were compared.
type Scale string

// Scales.
const (
	Ratio      Scale = "ratio"      // of geometric means: every value is positive
	Difference Scale = "difference" // of means: some value is 0 or negative
)

// Comparison of a sample with its baseline. Change, its intervals and Effect are
// shares on the ratio scale (0.1 = the value is 10 % larger), else in the
// metric's unit. They are changes of the value, whichever direction is better.
type Comparison struct {
	Scale      Scale   `json:"scale"`
	Boots      [2]int  `json:"boots"` // baseline, other: that entered
	Change     Number  `json:"change"`
	Low        Number  `json:"ci95_low"`
	High       Number  `json:"ci95_high"`
	Low90      Number  `json:"ci90_low"` // for the test of equivalence
	High90     Number  `json:"ci90_high"`
	HalfWidth  Number  `json:"half_width"`     // of the 95 % interval, as a share of the baseline
	PT         Number  `json:"p_t"`            // Welch's t, two-sided
	PU         Number  `json:"p_u"`            // Mann-Whitney U, exact, two-sided
	P          Number  `json:"p"`              // the larger
	Attainable Number  `json:"p_attainable"`   // smallest P that so many boots can give
	DF         Number  `json:"df"`             // Welch-Satterthwaite
	Sessions   int     `json:"sessions"`       // strata that held both sides
	Left       int     `json:"left_out"`       // boots of sessions that held one side only
	Note       string  `json:"note,omitempty"` // what the numbers do not show
	delta, se  float64 // on the scale of the test
}

// Compare compares v with base by their boots: Welch's t on logarithms, and the
// exact Mann-Whitney U test as its witness. It judges nothing.
func Compare(base, v Sample) Comparison {
	c := Comparison{Scale: Ratio, Boots: [2]int{len(base.Values), len(v.Values)}, Sessions: 1}
	a, okA := logs(base.Values)
	b, okB := logs(v.Values)
	step := [2]float64{}
	if okA && okB {
		step = [2]float64{base.Resolution / math.Exp(stat.Mean(a, nil)), v.Resolution / math.Exp(stat.Mean(b, nil))}
	} else {
		c.Scale, a, b = Difference, base.Values, v.Values
		step = [2]float64{base.Resolution, v.Resolution}
	}
	if len(a) == 0 || len(b) == 0 {
		c.none("no values")
		return c
	}
	c.delta = stat.Mean(b, nil) - stat.Mean(a, nil)
	c.Change = Num(c.share(c.delta))
	c.Attainable = Num(attainable(len(a), len(b)))
	if len(a) < 2 || len(b) < 2 {
		c.wide("one boot on a side")
		return c
	}
	va := (stat.Variance(a, nil) + step[0]*step[0]/12) / float64(len(a))
	vb := (stat.Variance(b, nil) + step[1]*step[1]/12) / float64(len(b))
	c.se = math.Sqrt(va + vb)
	df := (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	c.intervals(df)
	if u, err := stats.MannWhitneyUTest(b, a, stats.LocationDiffers); err == nil {
		c.PU = Num(u.P)
	} else {
		c.PU = Num(1) // all values are equal
	}
	c.P = Num(math.Max(c.PT.Value, c.PU.Value))
	return c
}

func (c *Comparison) intervals(df float64) {
	if c.se == 0 || math.IsNaN(df) { // equal values, printed exactly
		c.Low, c.High, c.Low90, c.High90 = c.Change, c.Change, c.Change, c.Change
		c.HalfWidth, c.PT, c.DF = Num(0), Num(1), Missing("no variance")
		if c.delta != 0 {
			c.PT = Num(0)
		}
		return
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}
	half, half90 := t.Quantile(0.975)*c.se, t.Quantile(0.95)*c.se
	c.Low, c.High = Num(c.share(c.delta-half)), Num(c.share(c.delta+half))
	c.Low90, c.High90 = Num(c.share(c.delta-half90)), Num(c.share(c.delta+half90))
	c.HalfWidth, c.DF = Num(half), Num(df)
	c.PT = Num(2 * t.Survival(math.Abs(c.delta)/c.se))
}

// share turns a distance on the test's scale into a Change.
func (c *Comparison) share(d float64) float64 {
	if c.Scale == Ratio {
		return math.Expm1(d)
	}
	return d
}

func (c *Comparison) none(why string) {
	c.Change = Missing("%s", why)
	c.Attainable = Missing("%s", why)
	c.wide(why)
}

func (c *Comparison) wide(why string) {
	m := Missing("%s", why)
	c.Low, c.High, c.Low90, c.High90, c.HalfWidth, c.PT, c.PU, c.P, c.DF = m, m, m, m, m, m, m, m, m
}

func logs(x []float64) ([]float64, bool) {
	z := make([]float64, len(x))
	for i, v := range x {
		if v <= 0 {
			return nil, false
		}
		z[i] = math.Log(v)
	}
	return z, true
}

// attainable is the smallest two-sided p of the U test: 2 / C(n+m, n).
func attainable(n, m int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	return math.Min(1, 2*math.Exp(lg(n)+lg(m)-lg(n+m)))
}
