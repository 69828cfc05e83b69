package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kernsweep/orchestrator/results"
)

const (
	causeMost    = 2000 // characters of a cause in a text
	failuresMost = 12   // that a text names
)

// End is how a run stands when its controller has come to its end.
type End struct {
	Model       *results.Model
	Interrupted bool
	Why         string // of the interruption
	ExitStatus  int
	Report      string // path of the report, "" = none could be written
	Next        string // the command to give
	Missing     int    // planned trials that were never tried
}

func (c *Center) subject(format string, v ...any) string {
	return clean(fmt.Sprintf("kernsweep "+c.run.Sweep+": "+format, v...), 180)
}

// quarantine is the event of a withdrawn target.
func (c *Center) quarantine(target, kernel, cause string, at time.Time) Event {
	e := Event{Kind: Quarantine, At: at, Target: target, Kernel: kernel, Cause: readable(cause)}
	e.Next = fmt.Sprintf("%s rerun %s --failed --target %s", c.run.Kernsweep, c.run.Name, target)
	e.Subject = c.subject("target %s is withdrawn: %s", target, cause)
	in := ""
	if kernel != "" {
		in = ", in kernel " + kernel
	}
	e.Text = c.text(
		fmt.Sprintf("Target %s is withdrawn from run %s%s; the other targets go on.", target, c.run.Name, in),
		"First cause: "+e.Cause,
		"See what is wrong:    "+c.run.Kernsweep+" target doctor "+target,
		"Once it works again:  "+e.Next)
	return e
}

// deadline is the event of what --until left out.
func (c *Center) deadline(cuts []results.Record) Event {
	e := Event{Kind: Deadline, Next: c.run.Kernsweep + " resume " + c.run.Name}
	until := cuts[0].Cut.Until.Local().Format("15:04 MST")
	var lines, names []string
	for _, r := range cuts {
		e.LeftOut += r.Cut.Trials
		names = append(names, r.Lane)
		lines = append(lines, fmt.Sprintf("  %s: %d trials, from block %d on", r.Lane, r.Cut.Trials, r.Cut.Block))
	}
	e.Target = strings.Join(names, ", ")
	e.Cause = fmt.Sprintf("it would not have ended by %s", until)
	e.Subject = c.subject("%d trials are left out, to be over by %s", e.LeftOut, until)
	e.Text = c.text(append([]string{fmt.Sprintf("Run %s starts nothing that would not end by %s. Left out:", c.run.Name, until)},
		append(lines, "Measure them another time:  "+e.Next)...)...)
	return e
}

// finish is the event of a run's end.
func (c *Center) finish(end End) Event {
	e := Event{Kind: Finish, Outcomes: map[string]int{}, ExitStatus: &end.ExitStatus, Report: end.Report, Next: end.Next}
	how := "has ended"
	if end.Interrupted {
		e.Kind, e.Cause = Interrupted, readable(end.Why)
		how = "was interrupted (" + e.Cause + ")"
	}
	for o, n := range end.Model.Count() {
		e.Outcomes[string(o)] = n
	}
	if end.Missing > 0 {
		e.Outcomes["not tried"] = end.Missing
	}
	counts := countText(e.Outcomes)
	e.Subject = c.subject("%s", counts)
	if end.Interrupted {
		e.Subject = c.subject("interrupted; %s", counts)
	}
	lines := []string{fmt.Sprintf("Run %s on %s %s, exit status %d: %s.", c.run.Name, c.run.Controller, how, end.ExitStatus, counts)}
	lines = append(lines, failures(end.Model)...)
	report := end.Report
	if report == "" {
		report = c.run.Kernsweep + " report " + c.run.Name
	}
	e.Text = c.text(append(lines, "Report:  "+report, "Next:    "+end.Next)...)
	return e
}

func (c *Center) test() Event {
	return Event{Kind: Test, At: time.Now(), Sweep: c.run.Sweep, Run: c.run.Name, Dir: c.run.Dir, Controller: c.run.Controller,
		Subject: c.subject("a test message"),
		Text:    fmt.Sprintf("This is what a message about sweep %s looks like. Somebody on %s tries whether it arrives.", c.run.Sweep, c.run.Controller)}
}

// countText is "46 ok, 2 failed": ok first, then by name.
func countText(n map[string]int) string {
	var s []string
	for o, c := range n {
		if c > 0 && o != string(results.OK) {
			s = append(s, fmt.Sprintf("%d %s", c, o))
		}
	}
	slices.SortFunc(s, func(a, b string) int { return strings.Compare(after(a), after(b)) })
	return strings.Join(append([]string{fmt.Sprintf("%d ok", n[string(results.OK)])}, s...), ", ")
}

func after(s string) string { _, t, _ := strings.Cut(s, " "); return t }

// failures are the withdrawn targets, the kernels that did not boot and the
// trials that failed, each with its first cause, alike ones once.
func failures(m *results.Model) []string {
	var out []string
	for _, l := range m.Lanes {
		if l.Quarantined {
			out = append(out, fmt.Sprintf("  %s: withdrawn: %s", l.Name, firstLine(l.Reason)))
		}
	}
	seen := map[string]int{}
	var order []string
	for _, t := range m.Trials {
		var what string
		switch a := t.Final(); a.Outcome {
		case results.OK, results.Skipped, results.NotApplicable, results.Interrupted:
			continue
		case results.BootFailed:
			what = fmt.Sprintf("  %s, kernel %s: %s: %s", t.Slot.Target, t.Slot.Kernel, a.Outcome, firstLine(a.Reason))
		default:
			what = fmt.Sprintf("  %s, kernel %s, %s.%s: %s: %s", t.Slot.Target, t.Slot.Kernel, t.Slot.Workload, t.Slot.Scenario, a.Outcome, firstLine(a.Reason))
		}
		if seen[what]++; seen[what] == 1 {
			order = append(order, what)
		}
	}
	for _, what := range order {
		if n := seen[what]; n > 1 {
			what += fmt.Sprintf(" (%d trials)", n)
		}
		out = append(out, what)
	}
	if more := len(out) - failuresMost; more > 0 {
		out = append(out[:failuresMost], fmt.Sprintf("  … and %d more", more))
	}
	return out
}

// text is the body of a message.
func (c *Center) text(lines ...string) string {
	for i, l := range lines {
		lines[i] = strings.Map(printable, strings.ToValidUTF8(l, "?"))
	}
	return strings.Join(lines, "\n")
}

// readable is a cause as it is told: whole, unless it is a novel.
func readable(s string) string {
	s = strings.Map(printable, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > causeMost {
		return string(r[:causeMost]) + "…"
	}
	return s
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return clean(s, 200)
}
