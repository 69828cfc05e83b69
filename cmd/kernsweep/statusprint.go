package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/plural"
	"kernsweep/orchestrator/report"
	"kernsweep/orchestrator/results"
)

// page is how wide and high what is printed may be.
type page struct {
	width, height int // height 0: as high as it likes
	needs         int // of a run that are said; 0: mostNeeds
	now           time.Time
	lines         []string
}

func (a *app) page() *page {
	p := &page{width: 80, now: time.Now()}
	if f, ok := rawOutput(a.out).(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			p.width, p.height = max(40, w), h
		}
	}
	return p
}

// say adds a text, folded, its later lines indented further.
func (p *page) say(indent int, text string) {
	lead := strings.Repeat(" ", indent)
	for i, l := range live.Words(live.Safe(text), p.width-indent-2) {
		if i == 1 {
			lead += "  "
		}
		p.lines = append(p.lines, strings.TrimRight(lead+l, " "))
	}
}

// do adds a text and the command that goes on from it, which is never folded: it is
// to be copied.
func (p *page) do(indent int, text, command string) {
	if command == "" {
		p.say(indent, text)
		return
	}
	arrow := "→ " + live.Safe(command)
	if text != "" {
		p.say(indent, text)
		if last := p.lines[len(p.lines)-1]; ansi.StringWidth(last)+2+ansi.StringWidth(arrow) <= p.width {
			p.lines[len(p.lines)-1] = last + "  " + arrow
			return
		}
		indent += 4
	}
	p.lines = append(p.lines, strings.Repeat(" ", indent)+arrow)
}

// brief is a text of two lines at most.
func (p *page) brief(text string) string { return ansi.Truncate(live.Safe(text), 2*p.width-12, "…") }

// head is a run in one line: how it stands, since when, how long it took, and how
// many of its trials are ok.
func (p *page) head(s *runStatus) string {
	name := s.Run
	if !s.whole && (s.name == "latest" || s.name == s.Short) {
		name = s.Short
	}
	d := length(time.Duration(s.Seconds * float64(time.Second)))
	text := name + "  " + s.State
	switch s.State {
	case "running":
		text = fmt.Sprintf("%s  running since %s (%s)", name, clock(s.Began, p.now), d)
		if s.LeftS > 0 {
			text += ", about " + length(time.Duration(s.LeftS)*time.Second) + " left"
		}
	case "ended", "interrupted":
		if s.Imported {
			return name + "  imported  " + s.counts()
		}
		text = fmt.Sprintf("%s  %s %s (%s)", name, s.State, clock(s.Ended, p.now), d)
	case "died without a word":
		text = fmt.Sprintf("%s  its controller died, last heard of %s", name, clock(s.Ended, p.now))
	}
	if s.Outcomes == nil {
		return text
	}
	return text + "  " + s.counts()
}

// counts says how many trials are ok, and of how many.
func (s *runStatus) counts() string {
	total, ok := s.Missing-s.needless, s.Outcomes[results.OK]
	for o, n := range s.Outcomes {
		if o != results.NotApplicable {
			total += n
		}
	}
	switch {
	case total <= 0:
		return "nothing yet"
	case ok == total && total > 1:
		return fmt.Sprintf("all %d trials ok", total)
	}
	return fmt.Sprintf("%d of %s ok", ok, plural.Of(total, "trial"))
}

// fine says that nobody is needed.
func (s *runStatus) fine() bool {
	return s.State == "ended" && len(s.Needs) == 0 && !s.cut && s.Missing == 0 && len(s.Notes) == 0
}

const mostNeeds = 5 // of a run among others

// details are what needs a person, each with its command.
func (p *page) details(s *runStatus) {
	for _, n := range s.Notes {
		p.say(2, n)
	}
	at := func(t time.Time) string { return clock(t, p.now) }
	most := mostNeeds
	if p.needs > 0 {
		most = p.needs
	}
	for _, n := range s.Needs[:min(len(s.Needs), most)] {
		p.do(2, p.brief(n.Sentence(at)), n.Command)
	}
	if n := len(s.Needs) - most; n > 0 {
		p.do(2, fmt.Sprintf("and %d more", n), s.call+" status "+paste.Word(s.name))
	}
	p.goOn(s)
	switch {
	case s.State == "running":
	case s.Verdict != "":
		p.do(2, "verdict: "+s.Verdict, s.call+" report "+paste.Word(s.name))
	case s.fine():
		p.do(2, "", s.call+" report "+paste.Word(s.name))
	}
}

// goOn is what is to be done about the whole run.
func (p *page) goOn(s *runStatus) {
	switch {
	case s.State == "running":
		p.do(2, "", s.call+" watch "+paste.Word(s.name))
	case s.State == "unreadable" || s.Imported:
	case s.State == "died without a word":
		p.do(2, plural.Of(s.Missing, "trial")+" never tried; nothing that was measured is lost", s.call+" resume "+paste.Word(s.name))
	case s.State == "interrupted":
		text := plural.Of(s.Missing, "trial") + " never tried"
		if s.Why != "" {
			text = s.Why + "; " + text
		}
		p.do(2, text, s.call+" resume "+paste.Word(s.name))
	case s.cut:
		p.do(2, plural.Of(s.Missing, "trial")+" left out for --until", s.call+" resume "+paste.Word(s.name))
	case s.State == "not begun":
		p.do(2, "it was made and never began", s.call+" resume "+paste.Word(s.name))
	case s.Missing > 0 || s.State != "ended":
		p.do(2, plural.Of(s.Missing, "trial")+" never tried", s.call+" resume "+paste.Word(s.name))
	case again(s.Needs) || len(s.Needs) > 1:
		p.do(2, "when that is mended, all of it again:", s.call+" rerun "+paste.Word(s.name)+" --failed")
	}
}

// again says that no need's own command repeats anything.
func again(needs []report.Need) bool {
	for _, n := range needs {
		if strings.Contains(n.Command, " rerun ") {
			return false
		}
	}
	return len(needs) > 0
}

// printStatus is a run by itself, with a line per lane and what is wrong there.
func (a *app) printStatus(s runStatus, lanes bool) {
	p := a.page()
	if s.Outcomes == nil {
		p.say(0, s.Run+"  "+s.State)
	} else {
		s.whole = true
		text, counts := strings.TrimSuffix(p.head(&s), s.counts()), live.Stand(s.Outcomes, s.Missing)
		if ansi.StringWidth(text+counts) > p.width {
			p.say(0, text)
			text = "  "
		}
		p.say(0, text+counts)
	}
	rest := s
	if lanes {
		rest.Needs = p.printLanes(&s)
	}
	p.details(&rest)
	fmt.Fprintln(a.out, strings.Join(p.lines, "\n"))
}

// printLanes says how each lane stands, and returns what is wrong with none of them.
func (p *page) printLanes(s *runStatus) []report.Need {
	at := func(t time.Time) string { return clock(t, p.now) }
	told := 0
	for _, l := range s.Lanes {
		p.say(2, fmt.Sprintf("%-16s %-12s %s", live.Safe(l.Name), l.State, live.Stand(l.Outcomes, l.Missing)))
		if l.Enough != "" {
			p.say(4, l.Enough)
		}
		said := false
		for _, n := range s.Needs {
			if n.Target == l.Name {
				p.do(4, n.Sentence(at), n.Command)
				said = said || strings.Contains(l.Reason, n.Cause) || l.State == "quarantined"
				told++
			}
		}
		if l.Reason != "" && !said {
			p.say(4, l.Reason)
		}
	}
	var rest []report.Need
	for _, n := range s.Needs {
		if !hasLane(s.Lanes, n.Target) {
			rest = append(rest, n)
		}
	}
	return rest
}

func hasLane(lanes []laneStatus, name string) bool {
	for _, l := range lanes {
		if l.Name == name {
			return true
		}
	}
	return false
}
