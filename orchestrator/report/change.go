package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
)

// percent prints a share with a sign: "+12.4 %".
func percent(share float64, digits int) string {
	return signed(100*share, digits) + " %"
}

// signed prints with a sign and so many digits after the point; what rounds to
// zero has none.
func signed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if math.Abs(v) >= 1e7 {
		s = strconv.FormatFloat(v, 'g', 4, 64)
	}
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	if v > 0 {
		return "+" + s
	}
	return s
}

// digits after the point that an interval of this width deserves, two at most.
func digits(low, high stats.Number, scale float64) int {
	if !low.OK() || !high.OK() {
		return 1
	}
	w := math.Abs(high.Value-low.Value) * scale
	switch {
	case w >= 200:
		return 0
	case w >= 1:
		return 1
	}
	return 2
}

// change of a comparison, in percent or in the metric's unit.
func change(c *compare.Comparison) string {
	if !c.Change.OK() {
		return "n/a (" + c.Change.Missing + ")"
	}
	if c.Scale == stats.Difference {
		return strings.TrimSpace(plus(c.Change.Value) + " " + c.Metric.Unit)
	}
	return percent(c.Change.Value, digits(c.Low, c.High, 100))
}

// interval of 95 % without unit; "" when there is none.
func interval(c *compare.Comparison, to string) string {
	if !c.Low.OK() || !c.High.OK() {
		return ""
	}
	if c.Scale == stats.Difference {
		return plus(c.Low.Value) + to + plus(c.High.Value)
	}
	d := digits(c.Low, c.High, 100)
	return signed(100*c.Low.Value, d) + to + signed(100*c.High.Value, d)
}

// plus is a figure with its sign.
func plus(v float64) string {
	if v > 0 {
		return "+" + four(v)
	}
	return four(v)
}

// four prints with four significant digits.
func four(v float64) string { return digitsOf(v, 4) }

// chance prints a p-value: as small as it is worth.
func chance(n stats.Number) string {
	switch {
	case !n.OK():
		return "n/a"
	case n.Value < 0.0001:
		return "<.0001"
	case n.Value >= 0.9995:
		return "1"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.*f", map[bool]int{true: 4, false: 3}[n.Value < 0.1], n.Value), "0")
}
