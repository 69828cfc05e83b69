// Package svg draws the small plots of a report, as SVG to stand inside an HTML
// page: rows of points on a shared axis (Strip, Forest) and series over time
// (Lines). Places along x are percentages of the width and text has a fixed
// size, so a plot fills whatever width it gets and its text never shrinks. It
// has no colours of its own: the page's style sheet gives them by class. All
// text is escaped.
package svg

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Margins of an axis in percent of the width: a mark at an end is whole.
const (
	left  = 5.0
	right = 95.0
)

// MinWidth is the narrowest width, in px, at which no text of a plot is cut off.
const MinWidth = 116

// Axis is a horizontal scale. The zero value has no extent: make one with Linear,
// Log or Change.
type Axis struct {
	low, high float64 // in the scale's own measure: the value over unit, or its logarithm
	unit      float64 // values are divided by it first, so that none overflows
	log       bool
	Ticks     []Tick
}

// Tick is a labelled place of an axis.
type Tick struct {
	Value float64
	Label string
	// Minor ticks lose their label where the plot is narrow.
	Minor bool
}

// Scale chooses the axis for values: logarithmic when all are positive and the
// largest is more than 50 times the smallest. Values that are no finite numbers
// are left out.
func Scale(values []float64) Axis {
	v := finite(values)
	if len(v) > 0 && slices.Min(v) > 0 && math.Log(slices.Max(v))-math.Log(slices.Min(v)) > math.Log(50) {
		return Log(v)
	}
	return Linear(v)
}

// Linear is an axis that holds all values; with none it goes from 0 to 1.
func Linear(values []float64) Axis {
	v := finite(values)
	if len(v) == 0 {
		v = []float64{0, 1}
	}
	lo, hi := slices.Min(v), slices.Max(v)
	a := Axis{unit: math.Max(math.Abs(lo), math.Abs(hi))}
	if a.unit == 0 {
		a.unit = 1
	}
	a.low, a.high = lo/a.unit, hi/a.unit
	if a.high-a.low < 1e-13 { // equal, but for the last bits: one tick, in the middle
		mid := a.low/2 + a.high/2
		a.low, a.high = mid-0.5, mid+0.5
		a.Ticks = []Tick{{Value: lo, Label: Number(lo, 0)}}
		return a
	}
	a.ticks()
	return a
}

// Log is a logarithmic axis that holds all positive values.
func Log(values []float64) Axis {
	a := Axis{unit: 1, log: true, low: math.Inf(1), high: math.Inf(-1)}
	for _, v := range finite(values) {
		if v > 0 {
			a.low, a.high = math.Min(a.low, math.Log10(v)), math.Max(a.high, math.Log10(v))
		}
	}
	if a.low > a.high {
		return Linear(nil)
	}
	if a.high-a.low < 1 {
		a.low, a.high = a.low-0.5, a.high+0.5
	}
	a.decades()
	return a
}

// Change is a logarithmic axis of ratios, symmetrical around 1, that reaches as
// far as reach (a natural logarithm, 0.1 is about 10 %). Labels are gains in percent.
func Change(reach float64) Axis {
	if !(reach > 1e-9) {
		reach = 1e-9
	}
	reach = math.Min(reach, 690)
	a := Axis{unit: 1, log: true, low: -reach / math.Ln10, high: reach / math.Ln10}
	add := func(ratio float64, minor bool) {
		if ratio > 0 && math.Abs(math.Log(ratio)) <= reach {
			a.Ticks = append(a.Ticks, Tick{Value: ratio, Label: Percent(ratio - 1), Minor: minor})
		}
	}
	if reach > math.Ln2*1.5 {
		k := math.Exp2(math.Max(1, math.Floor(reach/math.Ln2/1.25)))
		if k > 1024 { // factors say more than percentages
			k = math.Pow(10, math.Floor(reach/math.Ln10/1.25))
		}
		for _, r := range []float64{1 / k, 1, k} {
			add(r, false)
		}
		for i := range a.Ticks {
			a.Ticks[i].Label = Factor(a.Ticks[i].Value)
		}
		return a
	}
	step := nice(math.Expm1(reach) * 0.6)
	for math.Log1p(-step) < -reach {
		step /= 2
	}
	for _, s := range []float64{-step, -step / 2, 0, step / 2, step} {
		add(1+s, s == -step/2 || s == step/2)
	}
	return a
}

// At is the place of v in percent of the width; a value outside, or one that is
// no number, stands at the nearer end.
func (a Axis) At(v float64) float64 {
	x := a.measure(v)
	switch {
	case math.IsNaN(x), x < a.low:
		return left
	case x > a.high:
		return right
	}
	return left + (x-a.low)/(a.high-a.low)*(right-left)
}

// Holds reports whether v lies on the axis.
func (a Axis) Holds(v float64) bool {
	x := a.measure(v)
	return x >= a.low && x <= a.high
}

// IsLog reports whether the axis is logarithmic.
func (a Axis) IsLog() bool { return a.log }

func (a Axis) measure(v float64) float64 {
	if a.log {
		if v <= 0 {
			return math.Inf(-1)
		}
		return math.Log10(v)
	}
	return v / a.unit
}

// ticks of a linear axis, at round values: those that stay when there is little
// room are two or three.
func (a *Axis) ticks() {
	lo, hi := a.low*a.unit, a.high*a.unit
	if span := hi - lo; !math.IsInf(span, 0) {
		step := nice(span / 4)
		for v, i := math.Ceil(lo/step-1e-9), 0; v*step <= hi+step*1e-9 && i < 12; v, i = v+1, i+1 {
			a.Ticks = append(a.Ticks, Tick{Value: v * step, Label: Number(v*step, step)})
		}
	}
	if len(a.Ticks) < 2 || longest(a.Ticks) > 9 { // the ends, as far as they can be told apart
		step := nice((hi/2 - lo/2) / 50)
		a.Ticks = []Tick{{Value: lo, Label: Number(lo, step)}, {Value: hi, Label: Number(hi, step)}}
		if longest(a.Ticks) > 12 {
			a.Ticks = a.Ticks[:1]
		}
		return
	}
	// A narrow plot has room for about 16 characters.
	every := max(2, (longest(a.Ticks)+2)*len(a.Ticks)/16+1)
	if len(a.Ticks) <= 3 && longest(a.Ticks) <= 4 {
		every = 1
	}
	for i := range a.Ticks {
		a.Ticks[i].Minor = i%every != 0
	}
}

// decades are the ticks of a logarithmic axis: powers of ten, at most four.
func (a *Axis) decades() {
	step := math.Max(1, math.Ceil((a.high-a.low)/3))
	for i := math.Ceil(a.low/step) * step; i <= a.high; i += step {
		v := math.Pow(10, i)
		if v > 0 && !math.IsInf(v, 0) {
			a.Ticks = append(a.Ticks, Tick{Value: v, Label: Number(v, 0)})
		}
	}
	if longest(a.Ticks)*len(a.Ticks) > 16 {
		for i := range a.Ticks {
			a.Ticks[i].Minor = i > 0 && i < len(a.Ticks)-1
		}
	}
}

func longest(ticks []Tick) int {
	n := 0
	for _, t := range ticks {
		n = max(n, len(t.Label))
	}
	return n
}

// nice is 1, 2 or 5 times a power of ten, near x and not above it by much.
func nice(x float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(x)))
	switch f := x / p; {
	case f < 1.5:
		return p
	case f < 3.5:
		return 2 * p
	case f < 7.5:
		return 5 * p
	}
	return 10 * p
}

// Number prints v to the accuracy of step (0: 6 digits), without an exponent
// where that is short.
func Number(v, step float64) string {
	if v == 0 {
		return "0"
	}
	digits := 6
	if step > 0 {
		digits = int(math.Floor(math.Log10(math.Abs(v)))-math.Floor(math.Log10(step)*(1+1e-12)+1e-9)) + 1
		digits = min(max(digits, 1), 15)
	}
	s := strconv.FormatFloat(v, 'g', digits, 64)
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	if m := math.Abs(x); m >= 1e7 || m < 1e-4 {
		s = strings.Replace(strconv.FormatFloat(x, 'e', -1, 64), "e+0", "e", 1)
		return strings.Replace(strings.Replace(s, "e-0", "e-", 1), "e+", "e", 1)
	}
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// Percent prints a share with its sign: "+39.2 %".
func Percent(share float64) string {
	p := share * 100
	d := 1
	switch m := math.Abs(p); {
	case m >= 9950:
		return Factor(1 + share)
	case m >= 100:
		d = 0
	case m < 0.095 && m > 0:
		return sign(p) + Number(math.Abs(p), math.Abs(p)/10) + " %"
	}
	if math.Abs(p) < 0.995 { // 0.16 is not 0.2 beside a sentence that says 0.16
		d = 2
	}
	s := strconv.FormatFloat(math.Abs(p), 'f', d, 64)
	if d > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if s == "0" {
		return "0 %"
	}
	return sign(p) + s + " %"
}

// Factor prints a ratio: "x4", "/4".
func Factor(ratio float64) string {
	switch {
	case ratio == 1:
		return "0 %"
	case ratio > 1:
		return "×" + Number(ratio, ratio/10)
	}
	return "÷" + Number(1/ratio, 1/ratio/10)
}

func sign(v float64) string {
	if v < 0 {
		return "−"
	}
	return "+"
}

func finite(values []float64) []float64 {
	out := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out = append(out, v)
		}
	}
	return out
}
