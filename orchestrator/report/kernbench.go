package report

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kernsweep/orchestrator/results"
)

// kernbenchRows are kernbench's six lines and what a metric's name must hold.
// "Context Switches" are the involuntary ones, "Sleeps" the voluntary ones.
func kernbenchRows() []struct {
	label string
	is    func(string) bool
} {
	return []struct {
		label string
		is    func(string) bool
	}{
		{"Elapsed Time", func(n string) bool { return strings.Contains(n, "elapsed") }},
		{"User Time", func(n string) bool { return strings.Contains(n, "user") }},
		{"System Time", func(n string) bool { return strings.Contains(n, "sys") }},
		{"Percent CPU", func(n string) bool { return strings.Contains(n, "percent") || strings.Contains(n, "cpu") }},
		{"Context Switches", func(n string) bool {
			return n == "ctx" || strings.Contains(n, "context") || strings.Contains(n, "involuntary") || strings.Contains(n, "switches") && !voluntary(n)
		}},
		{"Sleeps", func(n string) bool { return strings.Contains(n, "sleeps") || voluntary(n) }},
	}
}

func voluntary(name string) bool {
	return strings.Contains(strings.ReplaceAll(name, "involuntary", ""), "voluntary")
}

// kernbenchBlocks prints kernbench's own blocks: arithmetic mean and sample
// standard deviation over all trials of a level, never pooled between levels.
func kernbenchBlocks(v *view) {
	for _, k := range v.kernels {
		for _, sc := range v.scenarios {
			c := v.cell(k, sc)
			if c == nil || c.Empty != "" {
				continue
			}
			for _, level := range []string{"single", "half", "optimal", "maximal", ""} {
				kernbenchBlock(v, c, level)
			}
		}
	}
}

// levelOf is the load level a metric belongs to, by its name, its scenario, or
// a note of the trials.
func levelOf(metric string, c *Cell) string {
	for _, text := range []string{metric, c.Scenario} {
		for _, l := range []string{"single", "half", "optimal", "maximal"} {
			if strings.Contains(strings.ToLower(text), l) {
				return l
			}
		}
	}
	for _, t := range c.Trials {
		for _, n := range t.Notes {
			if m := jobsNote.FindStringSubmatch(n); m != nil {
				return strings.ToLower(m[1])
			}
		}
	}
	return ""
}

func kernbenchBlock(v *view, c *Cell, level string) {
	var lines, printed []string
	n, mean, pooled := "", false, 0
	for _, row := range kernbenchRows() {
		is := func(n string) bool {
			return levelOf(n, c) == level && row.is(strings.TrimPrefix(strings.ToLower(n), results.MetricPrinted))
		}
		f := c.figure(func(n string) bool { return is(n) && !strings.HasPrefix(n, results.MetricPrinted) })
		if f == nil {
			continue
		}
		if n == "" {
			n = f.n()
			if len(f.Reported) == 1 && f.Trials == 1 {
				n += fmt.Sprintf(", mean of %d", f.Reported[0].N)
				mean = true
			}
		}
		if mean && len(f.Reported) == 0 && f.Trials == 1 && f.Mean.OK() {
			lines = append(lines, fmt.Sprintf("%s %s (n/a: the rounding in the log hides it)", row.label, six(f.Mean.Value)))
		} else {
			lines = append(lines, kernbenchLine(row.label, f))
		}
		v.kernbenchShown(f.Name)
		if p := c.figure(func(n string) bool { return is(n) && strings.HasPrefix(n, results.MetricPrinted) }); p != nil && !none(p) {
			printed = append(printed, kernbenchLine(row.label, p))
			v.shown[p.Name] = true
			if len(p.Reported) > 0 {
				pooled = p.Reported[0].N
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	if mean && len(printed) == 0 {
		n += " as printed"
	}
	v.out.blank()
	v.out.say(v.width, "  ", "%s, %s (n %s)", c.Kernel, c.Scenario, n)
	v.out.add("Average " + levelTitle(c, level) + " Run (std deviation):")
	for _, l := range lines {
		v.out.add(wrap(clean(l), v.width, "    ")...)
	}
	if len(printed) == 0 {
		return
	}
	v.out.say(v.width, "  ", "  In the log these stand pooled over %d runs of this and earlier levels; above they are taken apart:", pooled)
	for _, l := range printed {
		v.out.add(wrap("  "+clean(l), v.width, "    ")...)
	}
}

func kernbenchLine(label string, f *Figure) string {
	switch {
	case !f.Mean.OK():
		return label + " n/a (" + missingText(f) + ")"
	case len(f.Reported) == 1 && f.Boots == 1 && f.Trials == 1:
		return fmt.Sprintf("%s %s (%s)", label, six(f.Mean.Value), six(f.Reported[0].SD))
	case !f.SD.OK():
		return fmt.Sprintf("%s %s (n/a: %s)", label, six(f.Mean.Value), f.SD.Missing)
	}
	return fmt.Sprintf("%s %s (%s)", label, six(f.Mean.Value), six(f.SD.Value))
}

// kernbenchShown leaves a metric of an imported log out of the table of boots,
// which has nothing to add where no kernel has more than one.
func (v *view) kernbenchShown(metric string) {
	if v.src.doc.Run.Imported == nil {
		return
	}
	for _, c := range v.cells {
		if f := c.figure(func(n string) bool { return n == metric }); f != nil && f.Trials > 1 {
			return
		}
	}
	v.shown[metric] = true
}

// six is awk's %.6g, which kernbench prints with.
func six(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

var jobsNote = regexp.MustCompile(`(?i)\b(single|half|optimal|maximal)\b.*?-j ?(\d*)`)

// levelTitle is kernbench's name of a level; the number of jobs is in a trial's notes.
func levelTitle(c *Cell, level string) string {
	jobs := ""
	for _, t := range c.Trials {
		for _, n := range t.Notes {
			if m := jobsNote.FindStringSubmatch(n); m != nil && strings.EqualFold(m[1], level) && m[2] != "" {
				jobs = " " + m[2]
			}
		}
	}
	switch level {
	case "single":
		return "Single threaded"
	case "half":
		return strings.TrimSuffix("Half load -j"+jobs, " -j")
	case "optimal":
		return strings.TrimSuffix("Optimal load -j"+jobs, " -j")
	case "maximal":
		return "Maximal load -j"
	}
	return clean(c.Scenario)
}
