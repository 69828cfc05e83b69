// Package stats summarises the values of one cell. It is pure. The unit of
// replication is the boot: trials inside one boot are first made one boot value,
// since treating them as independent finds differences that are not there.
package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Number is a figure, or the reason why there is none; Value means nothing then.
// A NaN or an infinity is never a Value.
type Number struct {
	Value   float64 `json:"value"`
	Missing string  `json:"missing,omitempty"`
}

// OK reports whether there is a value.
func (n Number) OK() bool { return n.Missing == "" }

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
	Dropped    int       `json:"dropped,omitempty"` // values that were no finite numbers

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
func Summarise(boots [][]float64, resolution float64) Summary {
	s := Summary{}
	var all []float64
	for _, b := range boots {
		var kept []float64
		for _, v := range b {
			if !Num(v).OK() {
				s.Dropped++
				continue
			}
			kept = append(kept, v)
		}
		if len(kept) > 0 {
			s.Raw = append(s.Raw, kept)
			all = append(all, kept...)
		}
	}
	s.Boots, s.Trials = len(s.Raw), len(all)
	if s.Trials == 0 {
		s.none()
		return s
	}
	positive := slices.Min(all) > 0
	for _, b := range s.Raw {
		s.BootValues = append(s.BootValues, bootValue(b, positive))
	}
	s.Median = Num(Quantile(s.BootValues, 0.5))
	s.Min, s.Max = Num(slices.Min(all)), Num(slices.Max(all))
	s.Mean, s.SD = Num(stat.Mean(all, nil)), sampleSD(all, "one trial")
	s.SDBetween = sampleSD(s.BootValues, "one boot")
	s.SDWithin = within(s.Raw)
	s.logs(positive, resolution)
	return s
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
		return stat.GeometricMean(trials, nil)
	}
	mean := 0.0
	for _, v := range trials {
		mean += v / float64(len(trials)) // divided first: the sum of huge values is none
	}
	return mean
}

func sampleSD(x []float64, why string) Number {
	if len(x) < 2 {
		return Missing("%s", why)
	}
	return Num(stat.StdDev(x, nil))
}

// within pools the variances inside boots, each with its degrees of freedom.
func within(boots [][]float64) Number {
	sum, df := 0.0, 0.0
	for _, b := range boots {
		if len(b) < 2 {
			continue
		}
		sum += stat.Variance(b, nil) * float64(len(b)-1)
		df += float64(len(b) - 1)
	}
	if df == 0 {
		return Missing("one trial in each boot")
	}
	return Num(math.Sqrt(sum / df))
}

// logs fills the geometric mean and its interval.
func (s *Summary) logs(positive bool, resolution float64) {
	if !positive {
		m := Missing("a value is 0 or negative")
		s.GeoMean, s.CILow, s.CIHigh = m, m, m
		return
	}
	z := make([]float64, len(s.BootValues))
	for i, v := range s.BootValues {
		z[i] = math.Log(v)
	}
	mean := stat.Mean(z, nil)
	s.GeoMean = Num(math.Exp(mean))
	n := float64(len(z))
	if n < 2 {
		m := Missing("one boot")
		s.CILow, s.CIHigh = m, m
		return
	}
	step := resolution / math.Exp(mean)
	variance := stat.Variance(z, nil) + step*step/12
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	half := t * math.Sqrt(variance/n)
	s.CILow, s.CIHigh = Num(math.Exp(mean-half)), Num(math.Exp(mean+half))
}

// Quantile is the p-quantile (0 … 1) of x by linear interpolation between order
// statistics (type 7 of Hyndman and Fan); NaN for no values. x is not changed.
func Quantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(x))
	at := p * float64(len(s)-1)
	lo := int(math.Floor(at))
	if lo >= len(s)-1 {
		return s[len(s)-1]
	}
	return s[lo] + (at-float64(lo))*(s[lo+1]-s[lo])
}

func sortBy(index []int, key func(int) float64) {
	slices.SortStableFunc(index, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
}
