package report

import (
	"fmt"
	"strings"
	"time"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
)

// Need is something of a run that asks for a person.
type Need struct {
	Target  string    `json:"target,omitempty"`
	Kernel  string    `json:"kernel,omitempty"`
	Boot    int       `json:"boot,omitempty"` // where it was seen first; 0: in none
	What    string    `json:"what"`           // is wrong
	At      time.Time `json:"at,omitzero"`    // when it was known first
	Cause   string    `json:"cause"`          // the first one
	Command string    `json:"command"`        // what to give next; "" = nothing helps (other people's logs)
}

// Sentence is what is wrong and why, with the time as clock writes it.
func (n Need) Sentence(clock func(time.Time) string) string {
	when := ""
	if !n.At.IsZero() {
		when = " at " + clock(n.At)
	}
	return n.What + when + ": " + n.Cause
}

// Needs is what asks for a person, as a list that can be worked off: targets that
// were given up, kernels that do not boot, trials that failed. A cause stands once,
// however often it struck. run is how the commands name the run ("latest", its
// name), program how they call kernsweep ("" = kernsweep).
func (r *Report) Needs(run, program string) []Need {
	src := r.src.calledAs(program)
	return src.doc.needs(run)
}

func (d *Document) needs(run string) []Need {
	var list []Need
	given := map[string]bool{}
	for _, f := range d.Failures {
		if f.Boot == 0 && f.Outcome == results.Lost {
			given[f.Target] = true
			list = append(list, d.need(run, f, "rerun", f.Target+" was given up"))
		}
	}
	var unbooted, lost, failed []Failure
	for _, f := range d.Failures {
		switch {
		case f.Boot == 0, f.Outcome == results.Interrupted: // resume sees to those
		case strings.HasPrefix(f.What, "boot ") && f.Outcome == results.BootFailed:
			unbooted = alike(unbooted, f, func(f Failure) [2]string { return [2]string{f.Target, f.Kernel} })
		case f.Outcome == results.Lost && given[f.Target]: // the same cause
		case f.Outcome == results.Lost:
			lost = alike(lost, f, func(f Failure) [2]string { return [2]string{f.Target} })
		default:
			failed = alike(failed, f, func(f Failure) [2]string { return [2]string{f.Target, string(f.Outcome)} })
		}
	}
	for _, f := range unbooted {
		list = append(list, d.need(run, f, "log", fmt.Sprintf("kernel %s did not boot on %s%s", f.Kernel, f.Target, often(f.Count))))
	}
	for _, f := range lost {
		list = append(list, d.need(run, f, "rerun", f.Target+" was lost"+often(f.Count)))
	}
	for _, f := range failed {
		list = append(list, d.need(run, f, "log --failed", fmt.Sprintf("%s on %s%s, first %s", outcomeWord(f.Outcome), f.Target, trialsOf(f), f.What)))
	}
	return list
}

// need fits a failure with the command that goes on from it.
func (d *Document) need(run string, f Failure, command, what string) Need {
	n := Need{Target: f.Target, Kernel: f.Kernel, Boot: f.Boot, What: clean(what), Cause: clean(causeOf(f))}
	if command != "log --failed" && d.Run.Imported == nil { // of many trials the first says nothing of when
		n.At = f.At
	}
	switch {
	case d.Run.Imported != nil:
	case command == "rerun":
		n.Command = d.call(fmt.Sprintf("kernsweep rerun %s --failed --target %s", paste.Word(run), paste.Word(f.Target)))
	case command == "log":
		n.Command = d.call(fmt.Sprintf("kernsweep log %s%s --boot %d", paste.Word(f.Target), ofRun(run), f.Boot))
	default:
		n.Command = d.call(fmt.Sprintf("kernsweep log %s%s --failed", paste.Word(f.Target), ofRun(run)))
	}
	return n
}

// ofRun names a run where it is not the newest.
func ofRun(run string) string {
	if run == "latest" {
		return ""
	}
	return " " + paste.Word(run)
}

// alike counts f with the failure of the list that has the same key, if there is one.
func alike(list []Failure, f Failure, key func(Failure) [2]string) []Failure {
	f.Count = max(f.Count, 1)
	for i := range list {
		if key(list[i]) == key(f) {
			list[i].Count += f.Count
			return list
		}
	}
	return append(list, f)
}

func outcomeWord(o results.Outcome) string {
	switch o {
	case results.Failed:
		return "a workload failed"
	case results.BootFailed:
		return "a kernel went down in the middle"
	case results.Invalid:
		return "figures are invalid"
	}
	return string(o)
}

func trialsOf(f Failure) string {
	if f.Count < 2 {
		return ""
	}
	return fmt.Sprintf(" in %d trials", f.Count)
}

func often(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times)", n)
}

// causeOf is the stage and the cause, without the kernel's clock.
func causeOf(f Failure) string {
	s := untimed(f.Reason)
	if f.Stage != "" && !strings.HasPrefix(s, f.Stage) {
		s = f.Stage + ": " + s
	}
	return s
}

// Tally says in one line what follows from the primary comparisons: "bfs faster on
// 3, same on 1"; "" when there are none.
func (r *Report) Tally() string {
	const most = 3 // kernels
	var out []string
	for i, k := range tallies(r.src.doc) {
		if i == most {
			out = append(out, "more in the report")
			break
		}
		out = append(out, k)
	}
	return strings.Join(out, "; ")
}

func tallies(d *Document) []string {
	var out []string
	list := groups(d.Judgement, primary)
	for _, pair := range pairs(list) {
		n := map[stats.Verdict]int{}
		kernel := ""
		for _, g := range list {
			if g.pair() == pair {
				kernel = g.kernel
				for _, c := range g.list {
					n[c.Verdict]++
				}
			}
		}
		var parts []string
		for _, v := range []stats.Verdict{stats.Faster, stats.Slower, stats.Same, stats.NoEvidence, stats.Inconclusive, stats.Invalid, stats.DidNotBoot} {
			if n[v] > 0 {
				parts = append(parts, fmt.Sprintf("%s on %d", word(v), n[v]))
			}
		}
		if len(parts) > 0 {
			out = append(out, clean(kernel)+" "+strings.Join(parts, ", "))
		}
	}
	return out
}

// mostNeeds are said at the head of a report; all of them are in its failures.
const mostNeeds = 6

// needsList is what asks for a person, each with the command that goes on from it.
func needsList(src *source, width int) section {
	s := section{title: "What needs you"}
	list := src.doc.needs(src.doc.Run.Name)
	for _, n := range list[:min(len(list), mostNeeds)] {
		s.say(width, "  ", "%s", n.Sentence(func(t time.Time) string { return t.UTC().Format("15:04 UTC") }))
		if n.Command != "" {
			s.add(command("  → "+clean(n.Command), width, "     ")...)
		}
	}
	if n := len(list) - mostNeeds; n > 0 {
		s.say(width, "  ", "and %d more, see Failures", n)
	}
	return s
}
