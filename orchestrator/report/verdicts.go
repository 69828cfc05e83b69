package report

import (
	"fmt"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
)

// group is the primary comparisons of one workload on one target, of one kernel
// with one baseline.
type group struct {
	target, workload, kernel, baseline string
	list                               []*compare.Comparison // in the plan's order
}

func (g *group) pair() string {
	if g.kernel == g.baseline {
		return g.kernel + " against itself (noise floor)"
	}
	return g.kernel + " against " + g.baseline
}

// groups of the comparisons that want chooses, in the order they are listed.
func groups(j *compare.Judgement, want func(*compare.Comparison) bool) []*group {
	var out []*group
	at := map[[4]string]*group{}
	for i := range j.Comparisons {
		c := &j.Comparisons[i]
		if !want(c) {
			continue
		}
		k := [4]string{c.Target, c.Workload, c.Kernel, c.Baseline}
		if at[k] == nil {
			at[k] = &group{target: c.Target, workload: c.Workload, kernel: c.Kernel, baseline: c.Baseline}
			out = append(out, at[k])
		}
		at[k].list = append(at[k].list, c)
	}
	return out
}

func primary(c *compare.Comparison) bool { return c.Primary }

// verdicts is the answer: a line per target and workload, a line per scenario
// where they differ, then what all of them say together.
func verdicts(src *source, width int) section {
	s := section{title: "Verdicts"}
	j := src.doc.Judgement
	list := groups(j, primary)
	if len(list) == 0 {
		s.say(width, "", "%s", nothingCompared(src.doc))
		return s
	}
	names, workloads := 0, 0
	for _, g := range list {
		names, workloads = max(names, columns(clean(g.target))), max(workloads, columns(clean(g.workload)))
	}
	names, workloads = min(names, 16), min(workloads, 24)
	for _, pair := range pairs(list) {
		s.blank()
		s.say(width, "  ", "%s", pair)
		for _, g := range list {
			if g.pair() == pair {
				lead := fmt.Sprintf("  %s  %s  ", pad(g.target, names), pad(g.workload, workloads))
				g.lines(&s, lead, width)
			}
		}
	}
	overall(&s, j, width)
	worth(&s, j, width)
	for i, n := range j.Notes {
		if i == 0 {
			s.blank()
		}
		s.say(width, "  ", "NOTE  %s", n)
	}
	return s
}

// nothingCompared says why there is no comparison.
func nothingCompared(d *Document) string {
	baselines, others := false, false
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			baselines = baselines || c.Baseline != ""
			others = others || c.Baseline != "" && c.Kernel != c.Baseline
		}
	}
	switch {
	case len(d.Workloads) == 0:
		return "None: nothing was measured."
	case !baselines:
		return "None: no baseline is named that a kernel could be compared with (baseline = kernel.X in the sweep)."
	case len(d.Judgement.Comparisons) > 0:
		return "None: no primary metric was declared; the comparisons of the others are in --secondary."
	}
	if others {
		return "None: no cell beside the baseline has a metric that could be compared."
	}
	return "None: no kernel stands beside the baseline."
}

func pairs(list []*group) []string {
	var out []string
	for _, g := range list {
		out = addNew(out, g.pair())
	}
	return out
}

func pad(s string, n int) string {
	s = cut(clean(s), n)
	return s + strings.Repeat(" ", max(0, n-columns(s)))
}

// lines of a group: one where its scenarios agree, else the worst first and the
// ones without news counted.
func (g *group) lines(s *section, lead string, width int) {
	kinds := tally(g.list)
	if len(g.list) == 1 {
		s.lead(width, lead, claim(g.list[0]))
		because(s, g.list[0], width)
		return
	}
	if len(kinds) == 1 {
		s.lead(width, lead, together(g.list))
		because(s, g.example(), width)
		return
	}
	var parts []string
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", k.n, word(k.verdict)))
	}
	s.lead(width, lead, fmt.Sprintf("%d scenarios: %s", scenarios(g.list), strings.Join(parts, ", ")))
	most := 0
	for _, c := range g.list {
		if news(c.Verdict) || len(g.list) <= fewScenarios {
			most = max(most, columns(clean(g.label(c))))
		}
	}
	for _, k := range kinds {
		n := 0
		for _, c := range g.list {
			if c.Verdict != k.verdict || !news(c.Verdict) && len(g.list) > fewScenarios {
				continue
			}
			s.lead(width, "      "+pad(g.label(c), min(most, 24))+"  ", claim(c))
			if n++; n == 1 {
				because(s, c, width)
			}
		}
	}
}

// example is the comparison whose sentence stands for all: one with a floor of the
// device, if there is any.
func (g *group) example() *compare.Comparison {
	for _, c := range g.list {
		if c.Verdict == stats.Same && c.EffectFrom != "" {
			return c
		}
	}
	return g.list[0]
}

// fewScenarios are listed each, also those without news.
const fewScenarios = 6

// label of a comparison within its group.
func (g *group) label(c *compare.Comparison) string {
	for _, x := range g.list {
		if x.Metric.Name != c.Metric.Name {
			return c.Scenario + ", " + c.Metric.Name
		}
	}
	return c.Scenario
}

func scenarios(list []*compare.Comparison) int {
	var names []string
	for _, c := range list {
		names = addNew(names, c.Scenario)
	}
	return len(names)
}

// news says that a verdict asks to be looked at by itself.
func news(v stats.Verdict) bool {
	switch v {
	case stats.Same, stats.NoEvidence, stats.Inconclusive:
		return false
	}
	return true
}

type counted struct {
	verdict stats.Verdict
	n       int
}

// tally counts verdicts, the worst first.
func tally(list []*compare.Comparison) []counted {
	var out []counted
	for _, v := range []stats.Verdict{stats.DidNotBoot, stats.Invalid, stats.Slower, stats.Inconclusive, stats.NoEvidence, stats.Same, stats.Faster, ""} {
		n := 0
		for _, c := range list {
			if c.Verdict == v {
				n++
			}
		}
		if n > 0 {
			out = append(out, counted{v, n})
		}
	}
	return out
}

func word(v stats.Verdict) string {
	if v == "" {
		return "not judged"
	}
	return string(v)
}

// overall says what all workloads of a target say together; the same reason why
// nothing can be said of several kernels, once.
func overall(s *section, j *compare.Judgement, width int) {
	var texts []string
	kernels := map[string][]string{}
	for _, o := range j.Overall {
		text := o.Sentence
		if text == "" {
			text = fmt.Sprintf("%s against %s over %s: %s", o.Kernel, o.Baseline, strings.Join(o.Workloads, ", "), gain(o))
		}
		text = "overall, " + o.Target + ": " + text
		texts = addNew(texts, text)
		kernels[text] = addNew(kernels[text], o.Kernel)
	}
	for i, text := range texts {
		if i == 0 {
			s.blank()
		}
		if k := kernels[text]; len(k) > 1 || !strings.Contains(text, k[0]) {
			text += " (" + strings.Join(k, ", ") + ")"
		}
		s.say(width, "      ", "  %s", text)
	}
}

func gain(o compare.Overall) string {
	if !o.Gain.OK() {
		return "n/a (" + o.Gain.Missing + ")"
	}
	return fmt.Sprintf("%s, %d blocks", percent(o.Gain.Value, 2), o.Blocks)
}

// mostWorth is how many cells are named that more boots would help most.
const mostWorth = 2

func worth(s *section, j *compare.Judgement, width int) {
	if len(j.Worth) == 0 {
		return
	}
	s.blank()
	s.add("  most worth more boots")
	for i, w := range j.Worth[:min(len(j.Worth), mostWorth)] {
		s.say(width, "      ", "    %s %s on %s, %s: %d more of each kernel: %s", w.Workload, w.Scenario, w.Target, w.Kernel, w.Boots, w.Why)
		switch {
		case i > 0 && w.Command != "" && w.Command == j.Worth[i-1].Command:
			s.add("      (the same command measures both)")
		case w.Command != "":
			s.add(command("      "+clean(w.Command), width, "        ")...)
		}
	}
}
