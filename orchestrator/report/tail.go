package report

import (
	"fmt"
	"strings"
)

// warnings are the soft findings, per cell.
func warnings(src *source, width int) section {
	s := section{title: "Warnings about validity"}
	for _, w := range src.doc.Workloads {
		for _, c := range w.Cells {
			for _, x := range c.Warnings {
				s.say(width, "    ", "%s: %s (%d of its trials)", c.Cell, x.Text, x.Trials)
			}
			for _, t := range c.Trials {
				if t.Collect != "" {
					s.say(width, "    ", "%s, boot %d, repeat %d: collection: %s", c.Cell, t.Boot, t.Repeat, t.Collect)
				}
			}
		}
	}
	return s
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
		s.add(command("  again    "+clean(f.Again), width, "           ")...)
	}
	return s
}

func notes(src *source, width int) section {
	s := section{title: "Notes"}
	for _, n := range src.doc.Notes {
		lane := ""
		if n.Lane != "" {
			lane = n.Lane + ": "
		}
		s.say(width, "    ", "%s  %s%s", at(n.At), lane, n.Text)
	}
	return s
}
