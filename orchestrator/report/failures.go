package report

import (
	"fmt"
	"strings"

	"kernsweep/orchestrator/paste"
	"kernsweep/orchestrator/results"
)

// failures lists what is wrong in the run's final state, and what a person left
// out: lanes, boots, trials. Trials of one cell that failed alike are one entry,
// and so are those that were skipped for one reason.
func (b *builder) failures() []Failure {
	var out []Failure
	for _, t := range b.doc.Targets {
		if l := b.m.Lane(t.Name); l != nil && l.ByHand {
			out = append(out, Failure{Target: t.Name, What: "given up by hand", Outcome: results.Skipped,
				Reason: l.Reason, Again: b.again(t.Name, "", ""), At: l.Ended})
		} else if t.Quarantined != "" {
			out = append(out, Failure{Target: t.Name, What: "lane quarantined", Outcome: results.Lost,
				Reason: t.Quarantined, Again: b.again(t.Name, "", ""), At: b.m.Lane(t.Name).Ended})
		}
	}
	for _, x := range b.final {
		r := x.Result
		if r.Outcome == results.BootFailed || r.Outcome == results.Lost {
			out = merge(out, Failure{Target: x.Lane, Kernel: r.Kernel, What: fmt.Sprintf("boot %d", x.Number), Outcome: r.Outcome,
				Stage: r.Stage, Reason: r.Reason, LastLines: r.LastLines, Again: b.again(x.Lane, r.Kernel, ""), Boot: x.Number, At: x.Judged})
		}
	}
	for _, t := range b.m.Trials {
		a := t.Final()
		switch a.Outcome {
		case results.OK, results.NotApplicable:
			continue
		case results.Skipped:
			if s := t.Slot; !s.Warmup() && a.ByHand() && !b.givenUp(s.Target, a.Reason) {
				out = merge(out, Failure{Target: s.Target, Kernel: s.Kernel, Outcome: a.Outcome, Reason: a.Reason,
					What:  fmt.Sprintf("%s %s, block %d, repeat %d", s.Workload, s.Scenario, s.Block, s.Repeat),
					Again: b.again(s.Target, s.Kernel, "")})
			}
			continue // of others the failure that made them so is listed
		}
		if t.Slot.Warmup() || a.Outcome == results.BootFailed && b.bootFailed(t.Slot) {
			continue // the boot itself is listed
		}
		c := t.Slot.Cell
		out = merge(out, Failure{Target: c.Target, Kernel: c.Kernel, Outcome: a.Outcome, Reason: a.Reason,
			What:  fmt.Sprintf("%s %s, block %d, repeat %d", c.Workload, c.Scenario, t.Slot.Block, t.Slot.Repeat),
			Again: b.again(c.Target, c.Kernel, c.Workload), Boot: a.Slot.Boot, At: a.Ended})
	}
	return out
}

// givenUp says that a person gave the target up for this reason.
func (b *builder) givenUp(target, reason string) bool {
	l := b.m.Lane(target)
	return l != nil && l.ByHand && l.Reason == reason
}

func (b *builder) bootFailed(s results.Slot) bool {
	for _, x := range b.final {
		if x.Lane == s.Target && x.Result.Kernel == s.Kernel && x.Result.Block == s.Block && x.Result.Outcome == results.BootFailed {
			return true
		}
	}
	return false
}

// merge adds f, or counts it with an earlier failure of the same cause.
func merge(list []Failure, f Failure) []Failure {
	for i := range list {
		x := &list[i]
		if x.Target == f.Target && x.Kernel == f.Kernel && x.Outcome == f.Outcome && x.Stage == f.Stage &&
			untimed(x.Reason) == untimed(f.Reason) && x.Again == f.Again {
			x.Count = max(x.Count, 1) + 1
			return list
		}
	}
	return append(list, f)
}

// untimed is a line of a kernel's log without its time: "[    1.759671] VFS: …".
func untimed(s string) string {
	stamp, text, ok := strings.Cut(s, "] ")
	if ok && strings.HasPrefix(stamp, "[") && strings.Trim(stamp[1:], " .0123456789") == "" {
		return text
	}
	return s
}

// again is the command that repeats what failed; nothing repeats other people's logs.
func (b *builder) again(target, kernel, workload string) string {
	if b.run.Meta.Imported != nil {
		return ""
	}
	s := "kernsweep rerun " + paste.Word(b.run.Name()) + " --failed --target " + paste.Word(target)
	if kernel != "" {
		s += " --kernel " + paste.Word(kernel)
	}
	if workload != "" {
		s += " --workload " + paste.Word(workload)
	}
	return s
}
