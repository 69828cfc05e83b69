package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Moments of the trials of one boot: their number, arithmetic mean and sample
// standard deviation, in the metric's unit.
type Moments struct {
	N        int
	Mean, SD float64
}

// MomentsOf values; those that are no finite numbers are left out. Sums of huge
// and squares of tiny values do not overflow on the way.
func MomentsOf(x []float64) Moments {
	largest, n := 0.0, 0
	for _, v := range x {
		if a := math.Abs(v); a <= math.MaxFloat64 {
			largest = math.Max(largest, a)
			n++
		}
	}
	if n == 0 || largest == 0 {
		return Moments{N: n}
	}
	unit := binaryUnit(largest)
	origin, sum := 0.0, 0.0
	first := true
	for _, v := range x {
		if math.Abs(v) <= math.MaxFloat64 {
			if first {
				origin, first = unit.in(v), false
			}
			sum += unit.in(v) - origin
		}
	}
	mean, ss := sum/float64(n), 0.0
	for _, v := range x {
		if math.Abs(v) <= math.MaxFloat64 {
			d := unit.in(v) - origin - mean
			ss += d * d
		}
	}
	m := Moments{N: n, Mean: unit.out(origin + mean)}
	if n > 1 {
		m.SD = unit.out(math.Sqrt(ss / float64(n-1)))
	}
	return m
}

// binary is a power of two as a unit: values in it are exact and at most 1, save
// that the reciprocal of the extreme units needs two steps.
type binary struct{ down, downToo, up, upToo float64 }

func binaryUnit(largest float64) binary {
	_, e := math.Frexp(largest)
	half := e / 2
	return binary{math.Ldexp(1, -half), math.Ldexp(1, -(e - half)), math.Ldexp(1, half), math.Ldexp(1, e-half)}
}

func (b binary) in(v float64) float64  { return v * b.down * b.downToo }
func (b binary) out(v float64) float64 { return v * b.up * b.upToo }

// Welch is Welch's t of two sets of trials.
type Welch struct{ T, DF, P Number }

// Within is Welch's t (Welch 1947) between the trials of one boot a and of another
// b; T is positive when b has the larger mean. It says whether single boots
// separate. It says nothing about kernels: the unit of replication is the boot.
func Within(a, b Moments) Welch {
	all := func(why string) Welch { m := Missing("%s", why); return Welch{m, m, m} }
	for _, v := range []float64{a.Mean, b.Mean, a.SD, b.SD} {
		if !Num(v).OK() {
			return all("not a finite number")
		}
	}
	if a.N < 2 || b.N < 2 {
		return all("one trial on a side")
	}
	unit := binaryUnit(max(math.Abs(a.Mean), math.Abs(b.Mean), a.SD, b.SD))
	sa, sb := unit.in(a.SD), unit.in(b.SD)
	va, vb := sa*sa/float64(a.N), sb*sb/float64(b.N)
	if va+vb == 0 {
		return all("the trials of each boot are equal")
	}
	t := (unit.in(b.Mean) - unit.in(a.Mean)) / math.Sqrt(va+vb)
	r := va / (va + vb)
	df := 1 / (r*r/float64(a.N-1) + (1-r)*(1-r)/float64(b.N-1))
	return Welch{T: Num(t), DF: Num(df), P: pOfT(t, df)}
}

// pOfT is the two-sided p of a t.
func pOfT(t, df float64) Number {
	if math.IsInf(t, 0) {
		return Num(0)
	}
	return Num(math.Min(1, 2*distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Survival(math.Abs(t))))
}

// quantileT is the p-quantile of Student's t; the normal one where they agree to
// more digits than the former can be computed with.
func quantileT(p, df float64) float64 {
	if df > 1e7 {
		return distuv.UnitNormal.Quantile(p)
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(p)
}

// median and the scaled median absolute deviation, which estimates the standard
// deviation of normal values (1.4826 MAD).
func medianMAD(x []float64) (median, mad float64) {
	s := slices.Clone(x)
	slices.Sort(s)
	median = quantileSorted(s, 0.5)
	for i, v := range s {
		s[i] = math.Abs(v - median)
	}
	slices.Sort(s)
	return median, 1.4826 * quantileSorted(s, 0.5)
}

// logOf is the natural logarithm of a positive number, below the smallest normal
// one too, where math.Log is wrong on amd64.
func logOf(v float64) float64 {
	if v < 0x1p-1000 {
		return math.Log(v*0x1p+100) - 100*math.Ln2
	}
	return math.Log(v)
}

// geometric mean of positive values, by way of their ratios to the smallest: its
// exponential does not overflow, and equal values give their value.
func geometric(x []float64) float64 {
	low, high := slices.Min(x), slices.Max(x)
	origin, sum := logOf(low), 0.0
	for _, v := range x {
		sum += logOf(v) - origin
	}
	return min(low*math.Exp(sum/float64(len(x))), high)
}
