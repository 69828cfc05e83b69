package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// change is a change of the value in words: "+12.4 %", "-0.28 %", "+3 ms".
func (c *Comparison) change(v float64) string {
	if c.Scale == stats.Difference {
		return sign(v) + c.figure(math.Abs(v))
	}
	return percent(v)
}

// percent is a share as signed percent.
func percent(v float64) string {
	return digits(v, places(v)) + " %"
}

// places after the point that a share is printed with.
func places(v float64) int {
	switch p := math.Abs(v); {
	case p >= 10:
		return 0
	case p >= 0.01:
		return 1
	}
	return 2
}

func digits(v float64, places int) string {
	if math.Abs(v) >= 1e5 {
		return fmt.Sprintf("%+.3g", 100*v)
	}
	s := fmt.Sprintf("%+.*f", places, 100*v)
	if strings.Trim(s, "+-0.") == "" {
		return s[1:] // nothing has no sign
	}
	return s
}

func sign(v float64) string {
	switch {
	case v > 0:
		return "+"
	case v < 0:
		return "-"
	}
	return ""
}

// figure is a value of the metric with its unit.
func (c *Comparison) figure(v float64) string { return figure(v, c.Metric) }

func figure(v float64, m workloads.Metric) string {
	s := number(v)
	switch m.Unit {
	case "":
		return s
	case "%":
		return s + " percentage points"
	}
	return s + " " + m.Unit
}

// absolute is a value itself, not a change of one.
func (c *Comparison) absolute(v float64) string {
	if c.Metric.Unit == "" {
		return number(v)
	}
	return number(v) + " " + c.Metric.Unit
}

// number has four significant digits, and all before the point below a million.
func number(v float64) string {
	if a := math.Abs(v); a < 1e6 && (a >= 1000 || v == math.Trunc(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// observed is the change, with its interval where there is one.
func (c *claim) observed() string {
	if !c.Change.OK() {
		return "n/a (" + c.Change.Missing + ")"
	}
	s := c.change(c.Change.Value)
	if c.Scale == stats.Ratio {
		s = digits(c.Change.Value, c.places()) + " %"
	}
	if c.lower() {
		s = c.Metric.Name + " " + s
	}
	if i := c.interval(); i != "" {
		s += " (" + i + ")"
	}
	return s
}

func (c *claim) lower() bool { return c.Metric.Better == workloads.LowerIsBetter }

func (c *claim) interval() string {
	lower := ""
	if c.lower() {
		lower = "; lower is better"
	}
	if !c.Low.OK() || !c.High.OK() {
		return strings.TrimPrefix(lower, "; ")
	}
	if c.Scale == stats.Difference {
		return fmt.Sprintf("95 %% CI %s%s to %s%s", sign(c.Low.Value), number(math.Abs(c.Low.Value)), sign(c.High.Value), c.figure(math.Abs(c.High.Value))) + lower
	}
	n := c.places()
	return fmt.Sprintf("95 %% CI %s to %s %%", digits(c.Low.Value, n), digits(c.High.Value, n)) + lower
}

// places that the change and its interval are printed with alike.
func (c *claim) places() int {
	n := places(c.Change.Value)
	if c.Low.OK() && c.High.OK() {
		n = min(n, places(c.Low.Value), places(c.High.Value))
	}
	return n
}

// effectWords is the smallest effect of interest and where it is from.
func (c *claim) effectWords() string {
	s := bare(c.Effect)
	if c.EffectFrom != "" {
		s += " (the device's own noise: " + c.EffectFrom + ")"
	}
	return s
}

// bare is a share as percent without a sign, as short as it is exact enough.
func bare(v float64) string {
	if v >= 0.995 && v < 1e4 {
		return fmt.Sprintf("%.0f %%", 100*v)
	}
	return strconv.FormatFloat(100*v, 'g', 2, 64) + " %"
}

// bootsWords says how many boots stand against how many.
func (c *claim) bootsWords() string {
	s := fmt.Sprintf("%s against %d", plural.Of(c.Boots[1], "boot"), c.Boots[0])
	if c.Sessions > 1 {
		s += fmt.Sprintf(" in %d sessions", c.Sessions)
	}
	if c.Left > 0 {
		s += fmt.Sprintf(", without %s of sessions that measured one side only", plural.Of(c.Left, "boot"))
	}
	return s
}

// listed joins a few words, and says how many are left out.
func listed(list []string) string {
	const most = 6
	if n := len(list) - most; n > 0 {
		return strings.Join(list[:most], "; ") + fmt.Sprintf("; and %d more", n)
	}
	return strings.Join(list, "; ")
}
