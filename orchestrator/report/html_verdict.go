package report

import (
	"fmt"
	"html/template"
	"slices"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// verdictCount is a verdict and how many comparisons have it.
type verdictCount struct {
	Word string
	Icon template.HTML
	N    int
}

// verdictGroup is the comparisons of one verdict.
type verdictGroup struct {
	Word string
	Icon template.HTML
	Open bool
	N    int
	Line []verdictLine // those shown at once
	More []verdictLine // the rest

	common map[beside]bool // said once, below all lines
}

// verdictLine is one line of the verdict card.
type verdictLine struct {
	Target, What, Beside, Sentence string
	Findings                       []string // hard and soft, a sentence each
}

const (
	mostLines  = 12 // of one verdict that are shown at once
	mostBeside = 6  // findings beside one comparison; all stand in the validity list
)

// beside is a finding against comparisons of a pair of kernels on a target; with
// no pair, against those of the whole run.
type beside struct {
	target, pair string
	results.Finding
}

// commonFindings are those that stand against most comparisons, of the run or of
// a pair of kernels: beside each of them they would bury the answer. They are
// said once.
func (p *page) commonFindings() map[beside]bool {
	n, all := map[beside]int{}, map[beside]int{}
	var order []beside
	for i := range p.comparisons() {
		c := &p.comparisons()[i]
		if !c.Primary || !c.Change.OK() {
			continue
		}
		all[beside{}]++
		all[beside{target: c.Target, pair: pairText(c)}]++
		for i, f := range c.Findings {
			if slices.Contains(c.Findings[:i], f) {
				continue
			}
			for _, k := range []beside{{Finding: f}, {c.Target, pairText(c), f}} {
				if n[k]++; n[k] == 1 {
					order = append(order, k)
				}
			}
		}
	}
	common := map[beside]bool{}
	for _, k := range order {
		of := all[beside{target: k.target, pair: k.pair}]
		if k.Hard || n[k] < 2 || n[k] <= of/2 || common[beside{Finding: k.Finding}] {
			continue
		}
		common[k] = true
		where := ""
		if k.pair != "" {
			where = k.target + ", " + k.pair + ": "
		}
		p.Common = append(p.Common, fmt.Sprintf("%s%s, on %d of %d comparisons: %s", where, findingKind(k.Finding), n[k], of, k.Text))
	}
	return common
}

// worstFirst are the verdicts in the order a tired person wants them.
func worstFirst() []stats.Verdict {
	return []stats.Verdict{stats.DidNotBoot, stats.Slower, stats.Faster, stats.Invalid, stats.Inconclusive, stats.NoEvidence, stats.Same, ""}
}

func shapeOf(v stats.Verdict) svg.Shape {
	switch v {
	case stats.Faster:
		return svg.Better
	case stats.Slower:
		return svg.Worse
	case stats.Same:
		return svg.Same
	case stats.NoEvidence:
		return svg.NoEvidence
	case stats.Inconclusive:
		return svg.Inconclusive
	case stats.Invalid:
		return svg.Invalid
	case stats.DidNotBoot:
		return svg.NoBoot
	}
	return svg.Unjudged
}

func verdictWord(v stats.Verdict) string {
	if v == "" {
		return "no verdict"
	}
	return string(v)
}

// verdicts groups the primary comparisons by verdict, the worst first.
func (p *page) verdicts() {
	common := p.commonFindings()
	for _, v := range worstFirst() {
		g := verdictGroup{Word: verdictWord(v), Icon: template.HTML(svg.Icon(shapeOf(v)))}
		g.Open = v != stats.Same && v != stats.NoEvidence
		g.common = common
		for i := range p.comparisons() {
			c := &p.comparisons()[i]
			if !c.Primary || c.Verdict != v {
				continue
			}
			g.N++
			g.add(c)
		}
		if g.N > 0 {
			g.Line, g.More = g.Line[:min(len(g.Line), mostLines)], g.Line[min(len(g.Line), mostLines):]
			p.Groups = append(p.Groups, g)
			p.Counts = append(p.Counts, verdictCount{g.Word, g.Icon, g.N})
		}
	}
	all := 0
	for _, g := range p.Groups {
		all += g.N
	}
	for i := range p.Groups { // so few are read at once, good news too
		p.Groups[i].Open = p.Groups[i].Open || all <= fewScenarios
	}
	if len(p.Groups) == 0 {
		p.NoVerdict = nothingCompared(p.Doc)
	}
}

func (p *page) comparisons() []compare.Comparison {
	if p.Doc.Judgement == nil {
		return nil
	}
	return p.Doc.Judgement.Comparisons
}

// add adds a line, or the workload to the line that says the same of another one.
func (g *verdictGroup) add(c *compare.Comparison) {
	l := newLine(c, g.common)
	for i := range g.Line {
		x := &g.Line[i]
		if x.Target == l.Target && x.Beside == l.Beside && x.Sentence == l.Sentence && slices.Equal(x.Findings, l.Findings) {
			x.What += ", " + l.What
			return
		}
	}
	g.Line = append(g.Line, l)
}

func newLine(c *compare.Comparison, common map[beside]bool) verdictLine {
	l := verdictLine{Target: c.Target, What: whatOf(c), Beside: pairText(c), Sentence: c.Sentence}
	if l.Sentence == "" {
		l.Sentence = "Change of " + c.Metric.Name + ": " + changeText(c) + "."
	}
	left := 0
	for _, f := range c.Findings {
		text := findingKind(f) + ": " + f.Text
		switch {
		case common[beside{Finding: f}] || common[beside{c.Target, l.Beside, f}] || slices.Contains(l.Findings, text):
		case len(l.Findings) == mostBeside:
			left++
		default:
			l.Findings = append(l.Findings, text)
		}
	}
	if left > 0 {
		l.Findings = append(l.Findings, fmt.Sprintf("and %d more in the validity list", left))
	}
	return l
}

// pairText says which kernel is compared with which.
func pairText(c *compare.Comparison) string {
	if c.Kernel == c.Baseline {
		return c.Kernel + " against itself: noise floor"
	}
	return c.Kernel + " against " + c.Baseline
}

// overallText is the figure over all workloads: the sentence, or the numbers.
func overallText(o compare.Overall) string {
	if o.Sentence != "" {
		return o.Sentence
	}
	if !o.Gain.OK() {
		return "n/a (" + o.Gain.Missing + ")"
	}
	return fmt.Sprintf("gain %s over %s", svg.Percent(o.Gain.Value), several(o.Blocks, "block"))
}

func findingKind(f results.Finding) string {
	if f.Hard {
		return "Hard finding"
	}
	return "Warning"
}
