package validity

import (
	"errors"
	"strings"

	"kernsweep/targets"
	"kernsweep/workloads"
	"kernsweep/workloads/vmstat"
)

func bootRulesOfTrial() []trialRule {
	return []trialRule{
		{Rule{Name: "another boot", Hard: true, Threshold: "boot_id is the same before and after, and the uptime did not fall",
			Why: "A machine that rebooted measured two kernels, or one that nobody proved."}, sameBoot},
		{Rule{Name: "another scheduler", Hard: true, Threshold: "the scheduler is the one that the boot was proven with",
			Why: "sched_ext and BORE can be switched in a running kernel, and the figure would stand under the wrong name."}, sameScheduler},
		{Rule{Name: "knob changed", Hard: true, Threshold: "every knob reads back as it was set, after setting it and at the end",
			Why: "A daemon that tunes the machine would be measured instead of the scenario."}, sameKnobs},
		{Rule{Name: "CPUs changed", Hard: true, Threshold: "the same CPUs are online from the first sample to the last",
			Why: "With fewer CPUs everything takes longer, whatever the scheduler does."}, sameCPUs},
		{Rule{Name: "impossible figures", Hard: true, Threshold: "bytes, seconds and rate of a tool agree, and a transfer lasts 0.95 to 1.1 of what was asked for",
			Why: "A tool that contradicts itself was cut off, or its clock was."}, possible},
	}
}

func (e *Evidence) moved() *targets.RebootedError {
	var r *targets.RebootedError
	if errors.As(e.Moved, &r) {
		return r
	}
	return nil
}

func sameBoot(e *Evidence) answer {
	if r := e.moved(); r != nil && !strings.Contains(r.What, "scheduler") {
		return against(r.Error(), "")
	}
	return answer{}
}

func sameScheduler(e *Evidence) answer {
	if r := e.moved(); r != nil && strings.Contains(r.What, "scheduler") {
		return against(r.Error(), "")
	}
	return answer{}
}

func sameKnobs(e *Evidence) answer {
	if len(e.Knobs) == 0 {
		return answer{}
	}
	return against("a knob did not stay as it was set: "+e.Knobs[0], strings.Join(e.Knobs[1:], "; "))
}

func sameCPUs(e *Evidence) answer {
	if e.Spool == nil {
		return unchecked(noSpool)
	}
	if why := vmstat.CPUsChanged(e.snapshots()); why != "" {
		return against(why, "")
	}
	return answer{}
}

func possible(e *Evidence) answer {
	var invalid *workloads.InvalidError
	if errors.As(e.Err, &invalid) {
		return against(invalid.Reason, "")
	}
	return answer{}
}
