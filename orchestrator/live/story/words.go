package story

import (
	"fmt"
	"strings"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
)

// words say what a record tells; "" = nothing that belongs into a story.
func words(rec *results.Record) (k Kind, bad bool, text string) {
	switch rec.Kind {
	case results.KindLane:
		return Lane, strings.HasPrefix(rec.Note, results.NoteQuarantined), "lane " + because(rec.Note, rec.Reason)
	case results.KindPhase:
		if rec.Phase == "asked" {
			return Boot, false, fmt.Sprintf("boot %d: kernel %s is asked for (block %d)", rec.Boot.Number, rec.Boot.Kernel, rec.Boot.Block)
		}
		return Phase, false, string(rec.Phase)
	case results.KindBoot:
		return Boot, rec.Boot.Outcome != results.OK, bootWords(rec.Boot)
	case results.KindStarted:
		return Trial, false, trialName(rec) + " begins"
	case results.KindEnded:
		if rec.Note == "" {
			return Trial, false, ""
		}
		return Trial, false, trialName(rec) + ": " + rec.Note
	case results.KindJudged:
		return judgedWords(rec)
	case results.KindKnob:
		if rec.Knob == nil {
			return Knob, false, ""
		}
		if rec.Knob.Restored {
			return Knob, false, fmt.Sprintf("knob %s is restored to %q", rec.Knob.Path, rec.Knob.Old)
		}
		return Knob, false, fmt.Sprintf("knob %s is set to %q (was %q)", rec.Knob.Path, rec.Knob.Got, rec.Knob.Old)
	case results.KindNote:
		return Note, false, rec.Note
	case results.KindCut:
		if rec.Cut != nil {
			return Lane, false, plan.CutText(rec.Lane, rec.Cut)
		}
	case results.KindEnough:
		if rec.Enough != nil {
			return Lane, false, plan.EnoughText(rec.Enough)
		}
	}
	return Note, false, ""
}

func bootWords(b *results.Boot) string {
	if b.Outcome != results.OK {
		s := fmt.Sprintf("boot %d: kernel %s: %s", b.Number, b.Kernel, strings.ToUpper(string(b.Outcome)))
		if b.Stage != "" {
			s += " at " + b.Stage
		}
		return because(s, b.Reason)
	}
	s := fmt.Sprintf("boot %d: kernel %s runs: %s", b.Number, b.Kernel, b.Record.Release)
	if b.Record.Scheduler.Name != "" {
		s += ", scheduler " + b.Record.Scheduler.Name
	}
	if b.Record.Proven {
		return s + ", proven"
	}
	return because(s+", NOT proven", b.Record.Unproven)
}

func judgedWords(rec *results.Record) (Kind, bool, string) {
	s := because(trialName(rec)+": "+string(rec.Outcome), rec.Reason)
	if rec.Outcome == results.OK && rec.Parsed != nil {
		for _, v := range rec.Parsed.Values {
			if v.Primary && v.Missing == "" {
				s += fmt.Sprintf(", %s %.4g %s", v.Name, v.Value, v.Unit)
			}
		}
	}
	if rec.Collect != "" {
		s += "; its evidence is not whole: " + rec.Collect
	}
	return Trial, rec.Outcome != results.OK && rec.Outcome != results.NotApplicable, s
}

func trialName(rec *results.Record) string {
	if rec.Slot == nil {
		return "trial"
	}
	s := fmt.Sprintf("trial %s %s", rec.Slot.Workload, rec.Slot.Scenario)
	if rec.Slot.Warmup() {
		s += " (warm-up)"
	} else if rec.Slot.Repeat > 1 {
		s += fmt.Sprintf(" #%d", rec.Slot.Repeat)
	}
	if rec.Attempt > 1 {
		s += fmt.Sprintf(", attempt %d", rec.Attempt)
	}
	return s
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
