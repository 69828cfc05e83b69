package validity

import (
	"fmt"
	"strings"
	"unicode"

	"kernsweep/targets"
)

// kernelRules have a rule for each kind of complaint.
func kernelRules() []trialRule {
	var all []trialRule
	for _, k := range []struct{ kind, what, why string }{
		{targets.LogFlash, "JFFS2, UBI, UBIFS, MTD or its controller reports an error", "A flash chip that is read twice, or not at all, takes the CPU time that is measured."},
		{targets.LogIO, "a disk, a card or a file system reports an error", "Retries of a dying disk make any workload wait."},
		{targets.LogHung, "a task is blocked for minutes", "Something stood still, and the figure measures how long."},
		{targets.LogRCU, "a CPU did not pass through the scheduler for seconds", "The CPU, or the machine that emulates it, stood still."},
		{targets.LogLockup, "a CPU ran nothing but one task's kernel code for seconds", "The other tasks waited for a fault, not for the scheduler."},
		{targets.LogOops, "oops or BUG", "After an oops the kernel is no longer the one that was booted."},
		{targets.LogOOM, "the kernel killed a task for memory", "What was killed was the workload, or what kept it from being alone."},
		{targets.LogHardware, "machine check, or an error of memory that was not corrected", "A broken machine measures itself."},
		{targets.LogClock, "a clock source is marked unstable", "The seconds of the trial were counted by a clock that was then given up."},
		{targets.LogThrottled, "the CPU is slowed down for heat, or for lack of power", "A cooler kernel would look faster."},
	} {
		name := k.kind
		if k.kind == targets.LogThrottled {
			name = "throttled (kernel log)"
		}
		all = append(all, trialRule{Rule{Name: name, Hard: true, Threshold: "no new line in the kernel's log: " + k.what, Why: k.why},
			func(e *Evidence) answer { return e.logged(k.kind) }})
	}
	return append(all,
		trialRule{Rule{Name: "kernel complained", Threshold: "no new WARNING, corrected hardware error, or the like in the kernel's log",
			Why: "A kernel that prints a stack spends time on it, and may not work as it should."}, func(e *Evidence) answer { return e.logged(targets.LogOther) }},
		trialRule{Rule{Name: "taint changed", Threshold: "/proc/sys/kernel/tainted is the same before and after",
			Why: "Something happened to the kernel that it remembers, though its log may not."}, taintChanged})
}

// Complained is the first new line of the kernel's log that says that something is
// wrong, of whatever kind; "" when there is none.
func (e *Evidence) Complained() string {
	if signs := targets.LogSigns(e.Lines); len(signs) > 0 {
		return quote(signs[0].Line)
	}
	return ""
}

func (e *Evidence) logged(kind string) answer {
	n, first := 0, ""
	for _, s := range targets.LogSigns(e.Lines) {
		if s.Kind == kind {
			if n == 0 {
				first = quote(s.Line)
			}
			n++
		}
	}
	switch {
	case n == 1:
		return against("the kernel complained: "+first, "1 new line in its log")
	case n > 1:
		return against(fmt.Sprintf("the kernel complained %d times, first: %s", n, first), fmt.Sprintf("%d new lines in its log", n))
	case e.Log == nil:
		return unchecked("the kernel's log was not read")
	case e.Log.Missing != "":
		return unchecked(e.Log.Missing)
	}
	return answer{}
}

func taintChanged(e *Evidence) answer {
	switch {
	case e.Log == nil:
		return unchecked("the kernel's log was not read")
	case e.Log.TaintBefore == "" || e.Log.TaintAfter == "":
		return unchecked("the kernel does not tell its taint")
	case e.Log.TaintBefore == e.Log.TaintAfter:
		return answer{}
	}
	return against(fmt.Sprintf("the kernel's taint went from %s to %s", quote(e.Log.TaintBefore), quote(e.Log.TaintAfter)), "")
}

// longest line of a kernel in a sentence, in characters.
const longest = 160

// quote makes a line of a kernel safe to stand in a sentence.
func quote(line string) string {
	line = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.TrimSpace(line))
	if r := []rune(line); len(r) > longest {
		line = string(r[:longest]) + "…"
	}
	return line
}
