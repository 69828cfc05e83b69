package stats

import (
	"math"
	"math/rand/v2"
)

// Outliers gives the indexes of values further than 5 * 1.4826 * MAD from the
// median. They are for a person to look at and are never dropped: only a failed
// validity rule drops a value. Fewer than 5 values have none. Where more than
// half of the values are equal, the printed step (q / sqrt 12), or a thousandth of
// the median, stands in for the spread.
func Outliers(x []float64, resolution float64) []int {
	var values []float64
	var at []int
	largest := 0.0
	for i, v := range x {
		if Num(v).OK() {
			values, at = append(values, v), append(at, i)
			largest = math.Max(largest, math.Abs(v))
		}
	}
	if len(values) < 5 {
		return nil
	}
	unit := binaryUnit(largest)
	for i := range values {
		values[i] = unit.in(values[i])
	}
	median, scale := medianMAD(values)
	floor := unit.in(goodStep(resolution)) / math.Sqrt(12)
	if scale == 0 && floor == 0 {
		floor = 1e-3 * math.Abs(median)
	}
	scale = math.Max(scale, floor)
	var out []int
	for i, v := range values {
		if math.Abs(v-median) > 5*scale {
			out = append(out, at[i])
		}
	}
	return out
}

// Warm says how often the first kept trial of a boot did not look like the rest.
type Warm struct {
	Boots   int  // with at least 3 trials
	Higher  int  // first trial above the median of the rest by more than 3 * 1.4826 * MAD
	Lower   int  // below it
	Warming bool // in more than half of the boots, all on one side: more warm-up trials are needed
}

// Warming looks at the kept trials of each boot, in their order. Resolution is the
// step the tool printed with: a first trial within one step of the rest is not
// outside. Both sides must not be added up: chance puts the first of 3 trials
// outside in every fourth boot, but on either side alike.
func Warming(boots [][]float64, resolution float64) Warm {
	w := Warm{}
	for _, b := range boots {
		b = finite(b)
		if len(b) < 3 {
			continue
		}
		w.Boots++
		unit := binaryUnit(largest(b))
		rest := make([]float64, len(b)-1)
		for i, v := range b[1:] {
			rest[i] = unit.in(v)
		}
		median, scale := medianMAD(rest)
		bound := math.Max(3*scale, unit.in(goodStep(resolution)))
		if bound == 0 {
			bound = 1e-9 * math.Abs(median) // equal trials, and rounding
		}
		switch d := unit.in(b[0]) - median; {
		case d > bound:
			w.Higher++
		case d < -bound:
			w.Lower++
		}
	}
	w.Warming = w.Boots >= 2 && 2*max(w.Higher, w.Lower) > w.Boots
	return w
}

// Change is a step in the level of a series.
type Change struct {
	Found  bool
	At     int // index of the first value of the new level; 0: none was looked for
	Before Number
	After  Number
	P      Number
}

// ChangePoint finds the step of a series inside one trial: where the cumulative
// sum of the distances from the mean is furthest from 0, with p from permuted
// series (Taylor 2000). It is found below p = 0.01. Long series are looked at in
// means of up to 1000 equal pieces. A series whose neighbours resemble each other
// (one that wanders) has such steps too.
func ChangePoint(x []float64, rng *rand.Rand) Change {
	x = finite(x)
	if len(x) < 10 { // the best step of 9 values has p above 0.01
		m := Missing("%s are too few", count(len(x), "value", "values"))
		return Change{Before: m, After: m, P: m}
	}
	z, piece := pieces(x)
	at, top := cusum(z)
	c := Change{At: at * piece}
	c.Before, c.After = Num(MomentsOf(x[:c.At]).Mean), Num(MomentsOf(x[c.At:]).Mean)
	if top == 0 {
		c.P = Num(1)
		return c
	}
	const rounds = 999
	above, done := 0, 0
	for done < rounds && above < 100 { // with so many p is known to be far above 0.01
		rng.Shuffle(len(z), func(i, j int) { z[i], z[j] = z[j], z[i] })
		if _, t := cusum(z); t >= top*(1-1e-12) {
			above++
		}
		done++
	}
	c.P = Num(float64(above+1) / float64(done+1))
	c.Found = c.P.Value < 0.01
	return c
}

// pieces are the means of up to 1000 pieces of a series, in its unit, centred.
func pieces(x []float64) (z []float64, size int) {
	size = (len(x) + 999) / 1000
	unit := binaryUnit(largest(x))
	for i := 0; i+size <= len(x); i += size {
		sum := 0.0
		for _, v := range x[i : i+size] {
			sum += unit.in(v) / float64(size)
		}
		z = append(z, sum)
	}
	centre(z)
	return z, size
}

// cusum is where the cumulative sum is furthest from 0, and how far.
func cusum(z []float64) (at int, top float64) {
	sum := 0.0
	at = 1
	for i, v := range z[:len(z)-1] {
		sum += v
		if a := math.Abs(sum); a > top {
			at, top = i+1, a
		}
	}
	return at, top
}

func largest(x []float64) float64 {
	m := 0.0
	for _, v := range x {
		m = math.Max(m, math.Abs(v))
	}
	return m
}
