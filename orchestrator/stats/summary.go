// Package stats summarises the values of one cell, compares cells, and gives the
// verdict. It is pure: numbers go in, numbers and reasons come out. The unit of
// replication is the boot: trials inside one boot are first made one boot value,
// since treating them as independent finds differences that are not there.
package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Number is a figure, or the reason why there is none; Value means nothing then,
// and JSON has no value. A NaN or an infinity is never a Value.
type Number struct {
	Value   float64 `json:"value,omitempty"`
	Missing string  `json:"missing,omitempty"`
}

// OK reports whether there is a value.
func (n Number) OK() bool { return n.Missing == "" }

// MarshalJSON gives the value, 0 too, or the reason and no value: a reader that
// looks for a value only must not find one.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.OK() {
		return json.Marshal(struct {
			Missing string `json:"missing"`
		}{n.Missing})
	}
	return json.Marshal(struct {
		Value float64 `json:"value"`
	}{n.Value})
}

// Missing is the absence of a number.
func Missing(format string, args ...any) Number { return Number{Missing: fmt.Sprintf(format, args...)} }

// Num is v, or missing when v is no finite number.
func Num(v float64) Number {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing("not a finite number")
	}
	return Number{Value: v}
}

// Summary of one metric of one cell. Figures are in the metric's own unit.
type Summary struct {
	Boots  int         `json:"boots"`  // that gave a value
	Trials int         `json:"trials"` // that gave a value
	Raw    [][]float64 `json:"raw"`    // per boot, in the order given
	// BootValues: of each boot the geometric mean of its trials, or their
	// arithmetic mean where any value of the cell is 0 or negative.
	BootValues []float64 `json:"boot_values"`
	Dropped    int       `json:"dropped,omitempty"`  // values that were no finite numbers
	Averages   int       `json:"averages,omitempty"` // boots whose value is an average that the tool printed; their trials are not on file

	Median    Number `json:"median"`     // of the boot values
	GeoMean   Number `json:"geo_mean"`   // of the boot values; only positive values have one
	CILow     Number `json:"ci95_low"`   // 95 % interval of GeoMean: t on logs
	CIHigh    Number `json:"ci95_high"`  // needs 2 boots
	SDBetween Number `json:"sd_between"` // sample sd of the boot values; needs 2 boots
	SDWithin  Number `json:"sd_within"`  // pooled sample sd inside boots; needs a boot with 2 trials
	Min       Number `json:"min"`        // of all trials
	Max       Number `json:"max"`
	Mean      Number `json:"mean"` // of all trials, arithmetic: what kernbench and iperf users print
	SD        Number `json:"sd"`   // sample sd of all trials; needs 2. Descriptive only
}

// Summarise takes the values of each boot's trials. Resolution is the step the
// tool printed with (0: exact): the interval never gets narrower than it allows.
// Boots without a value that is no finite number are kept by reference.
func Summarise(boots [][]float64, resolution float64) Summary {
	s := Summary{}
	low, high := math.Inf(1), math.Inf(-1)
	for _, b := range boots {
		kept := finite(b)
		s.Dropped += len(b) - len(kept)
		if len(kept) == 0 {
			continue
		}
		if s.Raw == nil {
			s.Raw = make([][]float64, 0, len(boots))
		}
		s.Raw, s.Trials = append(s.Raw, kept), s.Trials+len(kept)
		low, high = math.Min(low, slices.Min(kept)), math.Max(high, slices.Max(kept))
	}
	s.Boots = len(s.Raw)
	if s.Trials == 0 {
		s.none()
		return s
	}
	s.BootValues = make([]float64, s.Boots)
	for i, b := range s.Raw {
		s.BootValues[i] = bootValue(b, low > 0)
	}
	s.Median = Num(Quantile(s.BootValues, 0.5))
	s.Min, s.Max = Num(low), Num(high)
	within, df := s.spread()
	s.SDBetween = sd(MomentsOf(s.BootValues), "one boot")
	s.SDWithin = Missing("one trial in each boot")
	if df > 0 {
		s.SDWithin = Num(within)
	}
	s.logs(low > 0, goodStep(resolution))
	return s
}

// finite is b without what is no finite number; b itself if it holds no such thing.
func finite(b []float64) []float64 {
	bad := func(v float64) bool { return !(math.Abs(v) <= math.MaxFloat64) }
	if !slices.ContainsFunc(b, bad) {
		return b
	}
	return slices.DeleteFunc(slices.Clone(b), bad)
}

func (s *Summary) none() {
	m := Missing("no values")
	s.Median, s.GeoMean, s.CILow, s.CIHigh = m, m, m, m
	s.SDBetween, s.SDWithin, s.Min, s.Max, s.Mean, s.SD = m, m, m, m, m, m
}

func bootValue(trials []float64, positive bool) float64 {
	if len(trials) == 1 {
		return trials[0] // exactly, without a way through logarithms
	}
	if positive {
		return geometric(trials)
	}
	return min(max(MomentsOf(trials).Mean, slices.Min(trials)), slices.Max(trials))
}

func sd(m Moments, why string) Number {
	if m.N < 2 {
		return Missing("%s", why)
	}
	return Num(m.SD)
}

// spread fills Mean and SD over all trials from the moments of each boot, and
// gives the sd inside boots, pooled with its degrees of freedom.
func (s *Summary) spread() (within, df float64) {
	each := make([]Moments, len(s.Raw))
	for i, b := range s.Raw {
		each[i] = Moments{N: 1, Mean: b[0]}
		if len(b) > 1 {
			each[i] = MomentsOf(b)
		}
	}
	return s.pool(each)
}

func (s *Summary) pool(each []Moments) (within, df float64) {
	largest, n := 0.0, 0.0
	for _, m := range each {
		largest = max(largest, math.Abs(m.Mean), m.SD)
		n += float64(m.N)
	}
	unit := binaryUnit(largest)
	mean, ss, between := 0.0, 0.0, 0.0
	for _, m := range each {
		mean += float64(m.N) / n * unit.in(m.Mean)
	}
	for _, m := range each {
		d, w := unit.in(m.Mean)-mean, unit.in(m.SD)
		between += float64(m.N) * d * d
		ss += float64(m.N-1) * w * w
		df += float64(m.N - 1)
	}
	s.Mean, s.SD = Num(unit.out(mean)), Missing("one trial")
	if n > 1 {
		s.SD = Num(unit.out(math.Sqrt((ss + between) / (n - 1))))
	}
	if df > 0 {
		within = unit.out(math.Sqrt(ss / df))
	}
	return within, df
}

// logs fills the geometric mean and its interval.
func (s *Summary) logs(positive bool, resolution float64) {
	if !positive {
		m := Missing("a value is 0 or negative")
		s.GeoMean, s.CILow, s.CIHigh = m, m, m
		return
	}
	geo := geometric(s.BootValues)
	s.GeoMean = Num(geo)
	origin := logOf(s.BootValues[0])
	z := make([]float64, len(s.BootValues))
	for i, v := range s.BootValues {
		z[i] = logOf(v) - origin
	}
	_, ss := squares(z)
	n := float64(len(z))
	if n < 2 {
		m := Missing("one boot")
		s.CILow, s.CIHigh = m, m
		return
	}
	step := resolution / geo
	half := quantileT(0.975, n-1) * math.Sqrt((ss/(n-1)+step*step/12)/n)
	s.CILow = numOr(geo*math.Exp(-half), "the step the values were printed with is too coarse for them")
	s.CIHigh = numOr(geo*math.Exp(half), "more than a number holds")
}

// Quantile is the p-quantile (0 … 1) of x by linear interpolation between order
// statistics (type 7 of Hyndman and Fan); NaN for no values. x is not changed.
func Quantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Clone(x)
	slices.Sort(s)
	return quantileSorted(s, p)
}

func quantileSorted(s []float64, p float64) float64 {
	at := p * float64(len(s)-1)
	lo := int(math.Floor(at))
	if lo >= len(s)-1 {
		return s[len(s)-1]
	}
	w := at - float64(lo)
	if w == 0 || s[lo] == s[lo+1] {
		return s[lo]
	}
	return s[lo]*(1-w) + s[lo+1]*w // no difference of huge values
}
