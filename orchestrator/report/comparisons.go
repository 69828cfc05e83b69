package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// comparisonTables has a table per workload and target: every primary
// comparison, and with secondary the others, which have an interval and no verdict.
func comparisonTables(src *source, secondary bool, width int) section {
	s := section{title: "Comparisons"}
	j := src.doc.Judgement
	var list []*compare.Comparison
	for i := range j.Comparisons {
		if c := &j.Comparisons[i]; c.Primary || secondary {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return s
	}
	holm := ""
	if j.Family > 0 {
		holm = fmt.Sprintf("p after Holm's correction over %s; ", several(j.Family, "primary comparison"))
	}
	s.say(width, "", "Geometric means over boots; change of the value with its 95 %% interval; %sboots: baseline x kernel.", holm)
	type place struct{ workload, target, metric, baseline string }
	var order []place
	by := map[place][]*compare.Comparison{}
	for _, c := range list {
		k := place{c.Workload, c.Target, c.Metric.Name, c.Baseline}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], c)
	}
	for _, k := range order {
		s.blank()
		comparisonTable(&s, by[k], width)
	}
	return s
}

// comparisonTable prints comparisons of one metric of one workload on one
// target with one baseline. What is the same in every row stands in its title.
func comparisonTable(s *section, list []*compare.Comparison, width int) {
	first := list[0]
	same := func(of func(*compare.Comparison) string) bool {
		return !slices.ContainsFunc(list, func(c *compare.Comparison) bool { return of(c) != of(first) })
	}
	title := first.Workload
	labels := []func(*compare.Comparison) string{}
	tab := table{}
	if scenario := (func(c *compare.Comparison) string { return c.Scenario }); same(scenario) {
		title += " " + first.Scenario
	} else {
		labels, tab.head = append(labels, scenario), append(tab.head, "scenario")
	}
	value := first.Kernel
	if kernel := (func(c *compare.Comparison) string { return c.Kernel }); !same(kernel) || len(labels) == 0 {
		labels, tab.head = append(labels, kernel), append(tab.head, "kernel")
		value = "value"
	}
	tab.labels = len(labels)
	anyP := slices.ContainsFunc(list, func(c *compare.Comparison) bool { return c.Primary && c.Holm.OK() })
	tab.head = append(tab.head, first.Baseline, value, "change", "CI95")
	if anyP {
		tab.head = append(tab.head, "p")
	}
	tab.head = append(tab.head, "boots", "verdict")
	tab.left = []int{len(tab.head) - 1}
	var notes footnotes
	shared := sharedRules(list)
	for _, c := range list {
		var row []string
		for _, of := range labels {
			row = append(row, of(c))
		}
		tab.row(append(row, comparisonRow(c, anyP, shared, &notes)...)...)
	}
	s.say(width, "  ", "%s on %s: %s%s (%s), baseline %s", title, first.Target, first.Metric.Name, unit(first.Metric.Unit), better(first), first.Baseline)
	s.table(&tab, &notes, width)
	if len(shared) > 0 {
		s.say(width, "  ", "validity, all of them: %s", strings.Join(shared, ", "))
	}
	moved(s, list, width)
}

// several is "1 boot", "2 boots".
func several(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " in " + u
}

func better(c *compare.Comparison) string {
	if c.Metric.Better != workloads.HigherIsBetter && c.Metric.Better != workloads.LowerIsBetter {
		return "no direction"
	}
	return string(c.Metric.Better) + " is better"
}

// sharedRules are those that found something about every comparison of a table
// of several; one without a figure has nothing that a warning could stand beside.
func sharedRules(list []*compare.Comparison) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(c *compare.Comparison) bool { return !c.Change.OK() })
	if len(list) < 2 {
		return nil
	}
	var shared []string
	for _, f := range list[0].Findings {
		if !slices.ContainsFunc(list, func(c *compare.Comparison) bool { return !slices.Contains(ruleNames(c), f.Rule) }) {
			shared = addNew(shared, f.Rule)
		}
	}
	return shared
}

// ruleNames are the rules that found something about a comparison.
func ruleNames(c *compare.Comparison) []string {
	var names []string
	for _, f := range c.Findings {
		names = addNew(names, f.Rule)
	}
	return names
}

func comparisonRow(c *compare.Comparison, withP bool, shared []string, notes *footnotes) []string {
	figure := func(n stats.Number) string {
		switch {
		case n.OK():
			return four(n.Value)
		case !c.Change.OK():
			return "n/a" // the reason stands beside the change
		}
		return "n/a " + notes.mark(n.Missing)
	}
	row := []string{figure(c.Base), figure(c.Value)}
	if c.Change.OK() {
		row = append(row, change(c))
	} else {
		row = append(row, "n/a "+notes.mark(c.Change.Missing))
	}
	ci := interval(c, "..")
	if ci == "" {
		ci = "n/a"
		if c.Change.OK() {
			ci += " " + notes.mark(cmp.Or(c.Low.Missing, c.High.Missing))
		}
	}
	row = append(row, ci)
	verdict := word(c.Verdict)
	if !c.Primary {
		verdict = "secondary"
	}
	if withP {
		p := ""
		if c.Primary {
			p = chance(c.Holm)
		}
		row = append(row, p)
	}
	for _, rule := range ruleNames(c) {
		if !slices.Contains(shared, rule) {
			verdict += notes.mark("validity: " + rule)
		}
	}
	if c.Within != nil && c.Within.P.OK() {
		verdict += notes.mark(within(c.Within))
	}
	return append(row, fmt.Sprintf("%dx%d", c.Boots[0], c.Boots[1]), verdict)
}

// within says what single boots show, and that it is not about the kernels.
func within(w *compare.Within) string {
	what := "overlap"
	if w.Separate {
		what = "separate"
	}
	return fmt.Sprintf("the trials of the single boots %s (%d against %d, t %s, p %s): of these two boots, not of the kernels",
		what, w.Trials[0], w.Trials[1], four(w.T.Value), chance(w.P))
}

// mostMoved is how many lines about counters stand under a table; json has all.
const mostMoved = 8

// moved lists counters that changed beside a difference.
func moved(s *section, list []*compare.Comparison, width int) {
	n := 0
	for _, c := range list {
		for _, m := range c.Moved {
			if !m.Clear {
				continue
			}
			if n++; n > mostMoved {
				continue
			}
			if n == 1 {
				s.add("moved with it (an association, not a cause):")
			}
			text := m.Sentence
			if text == "" {
				text = fmt.Sprintf("%s: %s, %s in the baseline (%s)", m.Counter, number(m.Value), number(m.Base), m.Unit)
			}
			s.say(width, "    ", "  %s, %s: %s", c.Scenario, c.Kernel, text)
		}
	}
	if n > mostMoved {
		s.say(width, "    ", "  and %d more: --format json", n-mostMoved)
	}
}

func number(n stats.Number) string {
	if !n.OK() {
		return "n/a (" + n.Missing + ")"
	}
	return four(n.Value)
}
