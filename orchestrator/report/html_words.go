package report

import (
	"fmt"
	"html/template"
	"strings"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// about says what was run, when, and how it stands.
func (p *page) about() {
	d := p.Doc
	p.About = []pageFact{{"Run", d.Run.Name}, {"Made", fmt.Sprintf("%s by %s on %s", at(d.Run.Created), orDash(d.Run.Who), orDash(d.Run.Host))}}
	switch n := len(d.Sessions); {
	case d.Running != "":
		p.About = append(p.About, pageFact{"State", "RUNNING (" + d.Running + "): what is missing or interrupted below may still come"})
	case d.Run.Imported != nil:
		p.About = append(p.About, pageFact{"State", fmt.Sprintf("imported from %s of others: no boot was seen and no kernel was proven", plural.Of(len(d.Run.Imported.Files), "file"))})
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
		p.Alarms = append(p.Alarms, fmt.Sprintf("Journal: on file and NOT counted: %s", plural.Of(d.Doubtful, "record")))
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
