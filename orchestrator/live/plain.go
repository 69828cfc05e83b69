package live

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"kernsweep/orchestrator/results"
)

// Line says what a record tells a person, "" when it is not worth a line.
func Line(rec results.Record) string {
	s := ""
	switch rec.Kind {
	case results.KindRun:
		s = "run " + rec.Note
	case results.KindLane:
		s = "lane " + rec.Note
		if rec.Reason != "" {
			s += ": " + rec.Reason
		}
	case results.KindPhase:
		if rec.Phase != "asked" {
			return ""
		}
		s = fmt.Sprintf("boot %03d %s: asked", rec.Boot.Number, rec.Boot.Kernel)
	case results.KindBoot:
		s = bootLine(rec.Boot)
	case results.KindJudged:
		s = judgedLine(rec)
	case results.KindNote:
		s = rec.Note
	default:
		return ""
	}
	if rec.Lane != "" {
		s = rec.Lane + ": " + s
	}
	return Safe(s)
}

func bootLine(b *results.Boot) string {
	s := fmt.Sprintf("boot %03d %s: %s", b.Number, b.Kernel, b.Outcome)
	if b.Outcome != results.OK {
		if b.Stage != "" {
			s += ", " + b.Stage
		}
		return s + ": " + b.Reason
	}
	s += fmt.Sprintf(", %s, scheduler %s", b.Record.Release, orUnknown(b.Record.Scheduler.Name))
	if b.Record.Proven {
		return s + ", proven"
	}
	return s + ", NOT proven: " + b.Record.Unproven
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func judgedLine(rec results.Record) string {
	s := fmt.Sprintf("%s %s.%s", rec.Slot.Kernel, rec.Slot.Workload, rec.Slot.Scenario)
	if rec.Slot.Repeat > 0 {
		s += fmt.Sprintf(" #%d", rec.Slot.Repeat)
	} else {
		s += " warm-up"
	}
	if rec.Attempt > 1 {
		s += fmt.Sprintf(" (attempt %d)", rec.Attempt)
	}
	s += ": " + string(rec.Outcome)
	if rec.Reason != "" {
		return s + ": " + rec.Reason
	}
	if rec.Parsed != nil {
		for _, v := range rec.Parsed.Values {
			if v.Primary && v.Missing == "" {
				s += fmt.Sprintf(", %s %.4g %s", v.Name, v.Value, v.Unit)
			}
		}
	}
	return s
}

// Safe makes control characters visible, so that device output cannot drive a
// terminal: also those that change the order of letters, join them, or cannot be
// seen, of which no two terminals think the same.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		return visible(r)
	}, s)
}

// SafeText is Safe for several lines: their ends stay, and tabs.
func SafeText(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' {
			return r
		}
		return visible(r)
	}, s)
}

func visible(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return '·'
	}
	return r
}

// Plain writes one line per event, with the time and an estimate of what is left
// after each boot.
type Plain struct {
	W       io.Writer
	Tracker *Tracker
	last    string
	skipped skips
}

// skips are the reasons that the last skipped trials of lanes gave.
type skips map[string]string

// once is s, or for a trial that was skipped one line for a reason, not one for each
// trial it takes with it: "" when it was said.
func (k *skips) once(rec results.Record, s string) string {
	if rec.Outcome != results.Skipped {
		return s
	}
	if (*k)[rec.Lane] == rec.Reason {
		return ""
	}
	if *k == nil {
		*k = skips{}
	}
	(*k)[rec.Lane] = rec.Reason
	return Safe(rec.Lane + ": trials skipped: " + rec.Reason)
}

// Observe takes a record in and prints it.
func (p *Plain) Observe(rec results.Record) {
	p.Tracker.Observe(rec)
	p.Print(rec)
}

// Print prints a record that the tracker has observed.
func (p *Plain) Print(rec results.Record) {
	s := Line(rec)
	if s == "" || s == p.last {
		return
	}
	p.last = s
	if s = p.skipped.once(rec, s); s == "" {
		return
	}
	if rec.Kind == results.KindBoot {
		if left, ok := p.Tracker.Left(rec.At); ok {
			s += fmt.Sprintf(" (about %s left)", left.Round(time.Second))
		}
	}
	fmt.Fprintf(p.W, "%s %s\n", rec.At.Local().Format("15:04:05"), s)
}

// Close has nothing to give back.
func (p *Plain) Close() {}
