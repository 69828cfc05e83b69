package report

import (
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
)

// claim is a comparison in one line.
func claim(c *compare.Comparison) string {
	s := word(c.Verdict)
	if c.Verdict == stats.DidNotBoot {
		return s
	}
	if !c.Change.OK() {
		return s + ": n/a (" + c.Change.Missing + ")"
	}
	s += ": " + c.Metric.Name + " " + change(c)
	if c.Low.OK() && c.High.OK() {
		s += " (" + interval(c, " to ") + ")"
	}
	s += fmt.Sprintf(", %d x %d boots", c.Boots[0], c.Boots[1])
	if names := ruleNames(c); len(names) > 0 && (c.Verdict == stats.Faster || c.Verdict == stats.Slower) {
		s += "; but see validity: " + strings.Join(names, ", ")
	}
	return s
}

// together is one line for scenarios of one verdict.
func together(list []*compare.Comparison) string {
	low, high := extremes(list)
	s := word(list[0].Verdict) + " in both scenarios"
	if n := scenarios(list); n != 2 {
		s = fmt.Sprintf("%s in all %d scenarios", word(list[0].Verdict), n)
	}
	if low == nil {
		return s
	}
	if low.Metric.Name == high.Metric.Name {
		s += ": " + low.Metric.Name
	}
	least, most := slices.Min(boots(list)), slices.Max(boots(list))
	n := several(least, "boot")
	if most > least {
		n = fmt.Sprintf("%d to %s", least, several(most, "boot"))
	}
	return s + fmt.Sprintf(" %s to %s, %s a side", change(low), change(high), n)
}

func boots(list []*compare.Comparison) []int {
	var n []int
	for _, c := range list {
		n = append(n, c.Boots[0], c.Boots[1])
	}
	return n
}

// extremes are the comparisons with the smallest and the largest change.
func extremes(list []*compare.Comparison) (low, high *compare.Comparison) {
	for _, c := range list {
		if !c.Change.OK() {
			continue
		}
		if low == nil || c.Change.Value < low.Change.Value {
			low = c
		}
		if high == nil || c.Change.Value > high.Change.Value {
			high = c
		}
	}
	return low, high
}

// because is the sentence behind a verdict that asks for one.
func because(s *section, c *compare.Comparison, width int) {
	switch c.Verdict {
	case stats.Faster, stats.Slower:
		return
	case stats.Same:
		if c.EffectFrom == "" { // the device's noise decides what counts as a difference
			return
		}
	}
	if text := strings.TrimPrefix(c.Sentence, word(c.Verdict)+": "); text != "" { // the verdict has just been said
		const indent = "          "
		lines := wrap(indent+clean(text), width, indent)
		if s.said(lines) {
			lines = []string{indent + "as above"}
		}
		s.add(lines...)
	}
}

// said says that a section has these lines already, one below the other.
func (s *section) said(lines []string) bool {
	for i := 0; i+len(lines) <= len(s.lines); i++ {
		if slices.Equal(s.lines[i:i+len(lines)], lines) {
			return true
		}
	}
	return false
}

// lead adds a text behind a lead of fixed columns; where it must wrap, it goes
// on below its own beginning.
func (s *section) lead(width int, lead, text string) {
	indent := strings.Repeat(" ", min(columns(lead), width/2))
	s.add(wrap(lead+clean(text), width, indent)...)
}
