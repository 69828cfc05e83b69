package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// The elements of JUnit XML that CI systems read. A suite is a target; its cases
// are the kernels' boots, the cells, and the primary comparisons.
type junitSuites struct {
	XMLName  xml.Name      `xml:"testsuites"`
	Name     string        `xml:"name,attr"`
	Tests    int           `xml:"tests,attr"`
	Failures int           `xml:"failures,attr"`
	Errors   int           `xml:"errors,attr"`
	Skipped  int           `xml:"skipped,attr"`
	Time     string        `xml:"time,attr"`
	Suites   []*junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string      `xml:"name,attr"`
	Tests      int         `xml:"tests,attr"`
	Failures   int         `xml:"failures,attr"`
	Errors     int         `xml:"errors,attr"`
	Skipped    int         `xml:"skipped,attr"`
	Time       string      `xml:"time,attr"`
	Timestamp  string      `xml:"timestamp,attr"`
	Properties []junitPair `xml:"properties>property,omitempty"`
	Cases      []junitCase `xml:"testcase"`
	seconds    float64
}

type junitPair struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string    `xml:"classname,attr"`
	Name    string    `xml:"name,attr"`
	Time    string    `xml:"time,attr"`
	Skipped *junitWhy `xml:"skipped"`
	Failure *junitWhy `xml:"failure"`
	Error   *junitWhy `xml:"error"`
	Out     string    `xml:"system-out,omitempty"`
}

type junitWhy struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit tells a CI system what failed: boots, trials, and comparisons in
// which a kernel is slower. What could not be decided is skipped, never passed.
func writeJUnit(w io.Writer, src *source, _ Options) error {
	all := junitSuites{Name: clean("kernsweep " + src.doc.Run.Sweep)}
	total := 0.0
	for i := range src.doc.Targets {
		s := suiteOf(src.doc, &src.doc.Targets[i])
		s.Time = seconds(s.seconds)
		total += s.seconds
		all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	all.Time = seconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(v float64) string { return fmt.Sprintf("%.3f", max(v, 0)) }

func suiteOf(d *Document, t *Target) *junitSuite {
	s := &junitSuite{Name: clean(t.Name), Timestamp: d.Run.Created.UTC().Format("2006-01-02T15:04:05"),
		Properties: []junitPair{{"run", clean(d.Run.Name)}, {"kernsweep", clean(d.Run.Version)}}}
	if strings.HasPrefix(t.Quarantined, results.SkippedBy) {
		s.add(junitCase{Class: clean(t.Name), Name: "lane", Skipped: reason("given up by hand", t.Quarantined)}, 0)
	} else if t.Quarantined != "" {
		s.add(junitCase{Class: clean(t.Name), Name: "lane", Error: reason("quarantined", t.Quarantined)}, 0)
	}
	for i := range t.Kernels {
		k := &t.Kernels[i]
		s.Properties = append(s.Properties, junitPair{"release of " + clean(k.Name), clean(release(k, d.Run.Imported != nil))},
			junitPair{"scheduler of " + clean(k.Name), clean(scheduler(k, d.Run.Imported != nil))})
		s.boot(d, t, k)
	}
	for _, w := range d.Workloads {
		for i := range w.Cells {
			if w.Cells[i].Target == t.Name {
				s.cell(&w.Cells[i])
			}
		}
	}
	for i := range d.Judgement.Comparisons {
		if c := &d.Judgement.Comparisons[i]; c.Target == t.Name && c.Primary {
			s.comparison(c)
		}
	}
	return s
}

func (s *junitSuite) add(c junitCase, time float64) {
	c.Time = seconds(time)
	s.seconds += time
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

func reason(kind, text string) *junitWhy {
	return &junitWhy{Type: kind, Message: clean(text), Text: clean(text)}
}

// boot is the case of a kernel's boots on the target.
func (s *junitSuite) boot(d *Document, t *Target, k *Kernel) {
	c := junitCase{Class: clean(t.Name) + ".boot", Name: clean(k.Name)}
	var reasons, out []string
	time := 0.0
	for _, f := range d.Failures {
		if f.Target == t.Name && f.Kernel == k.Name && strings.HasPrefix(f.What, "boot ") {
			text := f.What + ": " + (&BootFailure{Stage: f.Stage, Reason: f.Reason}).text()
			if f.Count > 1 {
				text += fmt.Sprintf(" (%d alike)", f.Count)
			}
			reasons = append(reasons, text)
			out = append(out, f.LastLines...)
		}
	}
	for _, b := range d.Boots {
		if b.Lane == t.Name && b.Result != nil && b.Result.Kernel == k.Name {
			time += took(b.Asked, b.Judged)
		}
	}
	switch {
	case len(reasons) > 0 && k.Boots[results.BootFailed] > 0:
		c.Failure = reason(string(results.BootFailed), strings.Join(reasons, "; "))
	case len(reasons) > 0:
		c.Error = reason(string(results.Lost), strings.Join(reasons, "; "))
	case k.Boots[results.OK] == 0 && d.Run.Imported != nil:
		c.Skipped = reason("imported", "imported from logs: no boot was seen")
	case k.Boots[results.OK] == 0:
		c.Skipped = reason("not run", "no boot")
	}
	c.Out = lines(out)
	s.add(c, time)
}

// lines of a console, each made safe.
func lines(list []string) string {
	for i := range list {
		list[i] = clean(strings.TrimRight(list[i], "\r\n"))
	}
	return strings.Join(list, "\n")
}

// cell is the case of a cell's trials: the worst of their outcomes.
func (s *junitSuite) cell(c *Cell) {
	k := junitCase{Class: clean(c.Target + "." + c.Workload), Name: clean(c.Scenario + " on " + c.Kernel)}
	time := 0.0
	for _, t := range c.Trials {
		time += took(t.Started, t.Ended)
	}
	why := func(o results.Outcome) string {
		for _, t := range c.Trials {
			if t.Outcome == o && t.Repeat > 0 {
				return fmt.Sprintf("%s %s, the first in block %d, repeat %d: %s", plural.Of(c.Outcomes[o], "trial"), o, t.Block, t.Repeat, t.Reason)
			}
		}
		return fmt.Sprintf("%s %s", plural.Of(c.Outcomes[o], "trial"), o)
	}
	for _, o := range []results.Outcome{results.BootFailed, results.Failed, results.Invalid} {
		if c.Outcomes[o] > 0 && k.Failure == nil && c.DidNotBoot == nil { // else the boot's case fails, once
			k.Failure = reason(string(o), why(o))
		}
	}
	for _, o := range []results.Outcome{results.Lost, results.Interrupted} {
		if c.Outcomes[o] > 0 && k.Failure == nil && k.Error == nil {
			k.Error = reason(string(o), why(o))
		}
	}
	if k.Failure == nil && k.Error == nil && len(c.Empty) > 0 {
		k.Skipped = reason("", c.Empty)
	}
	var out []string
	for _, f := range c.Findings {
		out = append(out, f.Rule+": "+f.Text)
	}
	if c.NotRun > 0 {
		out = append(out, plural.Of(c.NotRun, "planned trial")+" not run")
	}
	k.Out = lines(out)
	s.add(k, time)
}

// comparison is the case of a claim: only "slower" fails.
func (s *junitSuite) comparison(c *compare.Comparison) {
	k := junitCase{Class: clean(c.Target + "." + c.Workload), Name: clean(c.Scenario + ": " + c.Kernel + " against " + c.Baseline + ", " + c.Metric.Name)}
	text := c.Sentence
	if text == "" {
		text = claim(c)
	}
	switch c.Verdict {
	case stats.Slower:
		k.Failure = reason(string(c.Verdict), text)
	case stats.Invalid:
		k.Error = reason(string(c.Verdict), text)
	case stats.Inconclusive, stats.DidNotBoot, "":
		k.Skipped = reason(word(c.Verdict), text)
	}
	k.Out = clean(claim(c))
	s.add(k, 0)
}

// took is a time in seconds; a clock that went backwards gives none.
func took(from, to time.Time) float64 {
	if from.IsZero() || to.Before(from) {
		return 0
	}
	return to.Sub(from).Seconds()
}
