package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
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

	common map[results.Finding]bool // said once, below all lines
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

// commonFindings are those that stand against most comparisons: beside each of
// them they would bury the answer. They are said once.
func (p *page) commonFindings() map[results.Finding]bool {
	n, all := map[results.Finding]int{}, 0
	var order []results.Finding
	for _, c := range p.comparisons() {
		if !c.Primary {
			continue
		}
		all++
		for i, f := range c.Findings {
			if slices.Contains(c.Findings[:i], f) {
				continue
			}
			if n[f]++; n[f] == 1 {
				order = append(order, f)
			}
		}
	}
	common := map[results.Finding]bool{}
	for _, f := range order {
		if !f.Hard && n[f] > 2 && n[f] > all/2 {
			common[f] = true
			p.Common = append(p.Common, fmt.Sprintf("%s, on %d of %d comparisons: %s", findingKind(f), n[f], all, f.Text))
		}
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

// about says what was run, when, and how it stands.
func (p *page) about() {
	d := p.Doc
	p.About = []pageFact{{"Run", d.Run.Name}, {"Made", fmt.Sprintf("%s by %s on %s", at(d.Run.Created), orDash(d.Run.Who), orDash(d.Run.Host))}}
	switch n := len(d.Sessions); {
	case d.Running != "":
		p.About = append(p.About, pageFact{"State", "RUNNING (" + d.Running + "): what is missing or interrupted below may still come"})
	case d.Run.Imported != nil:
		p.About = append(p.About, pageFact{"State", fmt.Sprintf("imported from %d file(s) of others: no boot was seen and no kernel was proven", len(d.Run.Imported.Files))})
	case n > 0 && d.Sessions[n-1].Ended.IsZero():
		p.About = append(p.About, pageFact{"State", "the controller died"})
	default:
		p.About = append(p.About, pageFact{"State", fmt.Sprintf("%s (exit status %d)", stateText(d), d.ExitStatus)})
	}
	if again := goesOn(d); again != "" {
		p.About = append(p.About, pageFact{"Goes on with", again})
	}
	for _, x := range d.Damage {
		p.Alarms = append(p.Alarms, "Journal: "+x)
	}
	if d.Doubtful > 0 {
		p.Alarms = append(p.Alarms, fmt.Sprintf("Journal: %d record(s) are on file and NOT counted", d.Doubtful))
	}
	for _, t := range d.Targets {
		if t.Quarantined != "" {
			p.Alarms = append(p.Alarms, "Target "+t.Name+" was quarantined: "+t.Quarantined)
		}
		if t.Taken != "" {
			p.Alarms = append(p.Alarms, "Target "+t.Name+" was taken by another controller: "+t.Taken)
		}
		if t.HostBound {
			p.Alarms = append(p.Alarms, "Target "+t.Name+": figures depend on the controller's load, and are NOT COMPARABLE")
		}
	}
}

func orDash(s string) string {
	if s == "" {
		return "n/a"
	}
	return s
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

func newLine(c *compare.Comparison, common map[results.Finding]bool) verdictLine {
	l := verdictLine{Target: c.Target, What: whatOf(c), Beside: pairText(c), Sentence: c.Sentence}
	if l.Sentence == "" {
		l.Sentence = "Change of " + c.Metric.Name + ": " + changeText(c) + "."
	}
	left := 0
	for _, f := range c.Findings {
		text := findingKind(f) + ": " + f.Text
		switch {
		case common[f] || slices.Contains(l.Findings, text):
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
	return fmt.Sprintf("gain %s over %d block(s)", svg.Percent(o.Gain.Value), o.Blocks)
}

func findingKind(f results.Finding) string {
	if f.Hard {
		return "Hard finding"
	}
	return "Warning"
}

// whatOf names the workload, without a scenario that is none.
func whatOf(c *compare.Comparison) string {
	if c.Scenario == "" || c.Scenario == "default" {
		return c.Workload
	}
	return c.Workload + "." + c.Scenario
}

// changeText is the change of the value with its interval, on its own scale.
func changeText(c *compare.Comparison) string {
	if !c.Change.OK() {
		return "n/a (" + c.Change.Missing + ")"
	}
	show := svg.Percent
	if c.Scale == stats.Difference {
		unit := ""
		if c.Metric.Unit != "" {
			unit = " " + c.Metric.Unit
		}
		show = func(v float64) string {
			switch {
			case v > 0:
				return "+" + figureText(v) + unit
			case v < 0:
				return "−" + figureText(-v) + unit
			}
			return "0" + unit
		}
	}
	s := show(c.Change.Value)
	if c.Low.OK() && c.High.OK() {
		return s + " [" + show(c.Low.Value) + ", " + show(c.High.Value) + "]"
	}
	why := c.Low.Missing
	if why == "" {
		why = c.High.Missing
	}
	return s + " [interval n/a: " + why + "]"
}

// directionText says which direction of a metric is better.
func directionText(m workloads.Metric) string {
	switch m.Better {
	case workloads.HigherIsBetter:
		return "higher is better"
	case workloads.LowerIsBetter:
		return "lower is better"
	}
	return "not compared"
}

// metricText is a metric with its unit and direction.
func metricText(m workloads.Metric) string {
	s := m.Name
	if m.Unit != "" {
		s += " in " + m.Unit
	}
	return s + ", " + directionText(m)
}

// pageWord is an entry of the glossary.
type pageWord struct {
	Word string
	Icon template.HTML
	Text string
}

func glossary() []pageWord {
	var out []pageWord
	for _, x := range []struct {
		v    stats.Verdict
		text string
	}{
		{stats.Faster, "better than the baseline: the corrected p is at most 0.05, the 95 % interval excludes no change, and the change is at least the smallest effect of interest."},
		{stats.Slower, "worse than the baseline, by the same rules."},
		{stats.Same, "the 90 % interval lies inside the smallest effect of interest: a difference, if there is one, is too small to matter."},
		{stats.NoEvidence, "the interval is narrow and holds no change; sameness is not shown either."},
		{stats.Inconclusive, "nothing may be claimed: too few boots, an interval too wide, or kernels that nobody proved. The sentence says what is missing."},
		{stats.Invalid, "a hard validity check failed: the number is not what it seems to be."},
		{stats.DidNotBoot, "the kernel never came up, so there is nothing to compare."},
	} {
		out = append(out, pageWord{string(x.v), template.HTML(svg.Icon(shapeOf(x.v))), x.text})
	}
	for _, x := range [][2]string{
		{"boot", "one verified start of a kernel: the unit that counts. Trials inside one boot are made one value first."},
		{"baseline", "the kernel that the others are compared with: the broken upright line in the plots."},
		{"interval", "95 % confidence interval of the geometric mean over boots (Student's t on logarithms); beside a change, of the ratio (Welch)."},
		{"Holm", "correction of p for the number of primary comparisons in the run."},
		{"gain", "how much better: for metrics where lower is better, half the value is a gain of 100 %."},
	} {
		out = append(out, pageWord{x[0], "", x[1]})
	}
	return out
}

// kernelClasses give every kernel a colour and a pattern of dashes.
type kernelClasses map[string]string

const kernelColours = 6

func newKernelClasses(d *Document) kernelClasses {
	k := kernelClasses{}
	add := func(name string) {
		if k[name] == "" {
			k[name] = fmt.Sprintf("k%d", len(k)%kernelColours)
		}
	}
	for _, x := range d.Kernels {
		add(x.Name)
	}
	for _, w := range d.Workloads {
		for _, c := range w.Cells {
			add(c.Kernel)
		}
	}
	return k
}

// joined joins parts, leaving out the empty ones.
func joined(sep string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, sep)
}
