package report

import (
	"fmt"
	"strings"
	"time"
)

// finding is one soft finding and where it was made.
type finding struct {
	text   string // as first seen
	trials int
	cells  []string
}

// warnings are the soft findings that are no rule's: one entry for a finding,
// whatever its numbers are, with the cells it was made in.
func warnings(src *source, s *section, width int) {
	var found []*finding
	at := map[string]*finding{}
	for _, w := range src.doc.Workloads {
		for _, c := range w.Cells {
			for _, x := range c.Warnings {
				if c.ruled(x.Text) {
					continue
				}
				key := withoutNumbers(x.Text)
				f := at[key]
				if f == nil {
					f = &finding{text: x.Text}
					at[key] = f
					found = append(found, f)
				}
				f.trials += x.Trials
				f.cells = addNew(f.cells, c.Cell.String())
			}
		}
	}
	if len(found) > 0 {
		s.blank()
	}
	for _, f := range found {
		s.say(width, "  ", "%s", f.text)
		more := ""
		if n := len(f.cells) - mostPlaces; n > 0 {
			f.cells, more = f.cells[:mostPlaces], fmt.Sprintf(" and %d more cells", n)
		}
		s.say(width, "    ", "  in %d trials: %s%s", f.trials, strings.Join(f.cells, ", "), more)
	}
	for _, w := range src.doc.Workloads {
		for _, c := range w.Cells {
			for _, t := range c.Trials {
				if t.Collect != "" {
					s.say(width, "    ", "%s, boot %d, repeat %d: collection: %s", c.Cell, t.Boot, t.Repeat, t.Collect)
				}
			}
		}
	}
}

// ruled says that a warning is the text of a rule's finding, and listed there.
func (c *Cell) ruled(text string) bool {
	for _, t := range c.Trials {
		for _, f := range t.Findings {
			if f.Text == text {
				return true
			}
		}
	}
	return false
}

// withoutNumbers is a text in which numbers do not make a difference.
func withoutNumbers(s string) string {
	var b strings.Builder
	digits := false
	for _, r := range s {
		if r >= '0' && r <= '9' || digits && r == '.' {
			if !digits {
				b.WriteByte('N')
			}
			digits = true
			continue
		}
		digits = false
		b.WriteRune(r)
	}
	return b.String()
}

const shownLines = 5 // of a console, in a failure

func failureList(src *source, width int) section {
	s := section{title: "Failures"}
	for _, f := range src.doc.Failures {
		s.blank()
		head := f.Target
		if f.Kernel != "" {
			head += " / " + f.Kernel
		}
		head += ": " + f.What
		if f.Count > 1 {
			head += fmt.Sprintf(" and %d more alike", f.Count-1)
		}
		if f.Outcome != "" {
			head += ": " + string(f.Outcome)
		}
		s.say(width, "  ", "%s", head)
		cause := f.Reason
		if f.Stage != "" {
			cause = f.Stage + ": " + cause
		}
		s.say(width, "           ", "  cause    %s", cause)
		for _, l := range f.LastLines[max(0, len(f.LastLines)-shownLines):] {
			s.add(cut("  console  "+clean(strings.TrimRight(l, "\r\n")), width))
		}
		if f.Again != "" {
			s.add(command("  again    "+clean(f.Again), width, "           ")...)
		}
	}
	return s
}

// notes are what else the journal says; what it says again and again stands once,
// where it was said first.
func notes(src *source, width int) section {
	s := section{title: "Notes"}
	type said struct{ lane, text string }
	times := map[said]int{}
	last := map[said]time.Time{}
	for _, n := range src.doc.Notes {
		k := said{n.Lane, n.Text}
		times[k]++
		last[k] = n.At
	}
	for _, n := range src.doc.Notes {
		k, lane := said{n.Lane, n.Text}, ""
		if n.Lane != "" {
			lane = n.Lane + ": "
		}
		switch c := times[k]; {
		case c == 1:
			s.say(width, "    ", "%s  %s%s", at(n.At), lane, n.Text)
		case c > 1:
			s.say(width, "    ", "%s  %s%s (%d times, the last %s)", at(n.At), lane, n.Text, c, at(last[k]))
		}
		times[k] = 0
	}
	return s
}
