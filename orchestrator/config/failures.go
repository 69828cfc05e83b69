package config

import (
	"fmt"
	"slices"
	"time"

	"kernsweep/targets"
)

// Failures is a failures block: what follows when something goes wrong with a
// target, and whose fault it is.
type Failures struct {
	// Retries are the further attempts of a trial whose link was lost, and of a boot
	// that ended in one of Infrastructure; default 1.
	Retries int `hcl:"retries,optional" doc:"further attempts of a trial whose link was lost, and of a boot that ended in one of infrastructure (default 1)"`
	// Backoff is the pause before the next try after an infrastructure failure,
	// doubled with each one in a row up to BackoffMax; default 5s, 0 = none.
	Backoff time.Duration `hcl:"backoff,optional" doc:"pause before the next try after an infrastructure failure, doubled with each one in a row (default 5s; 0s: none)"`
	// BackoffMax bounds the pause; default 5m, or Backoff where that is longer.
	BackoffMax time.Duration `hcl:"backoff_max,optional" doc:"longest pause (default 5m)"`
	// Infrastructure names what a boot may end in without the kernel being blamed.
	Infrastructure []string `hcl:"infrastructure,optional" doc:"what a boot may end in, or be cut off by during a trial, without the kernel being blamed: it is tried again instead, and its trials are lost if that does not help. As the report names it: \"hang\", \"unreachable\", \"unexpected restart\", …; \"timeout\" is a trial that ran into its deadline; a panic is the kernel's unless \"panic\" stands here (default: none)"`
	// KernelComplaint says what a new complaint in the kernel's log makes of a trial:
	// "warn": errors that spoil a figure make it invalid, others are a warning;
	// "fail": any of them is a failure of the workload.
	KernelComplaint string `hcl:"kernel_complaint,optional" doc:"what a new complaint in the kernel's log makes of a trial that ended well: \"warn\": an error that spoils figures (flash or I/O error, oops, hung task, out of memory, …) makes it invalid, any other, such as a WARNING, stands beside the figure; \"fail\": any complaint makes it failed (default \"warn\")"`
}

// What Failures.KernelComplaint may be.
const (
	ComplaintWarns = "warn"
	ComplaintFails = "fail"
)

// Excuses says that what a boot ended in (targets.BootError.Stage) counts as
// infrastructure.
func (f Failures) Excuses(stage string) bool { return slices.Contains(f.Infrastructure, stage) }

const maxRetries = 100

func defaultFailures() Failures {
	return Failures{Retries: 1, Backoff: 5 * time.Second, BackoffMax: 5 * time.Minute, KernelComplaint: ComplaintWarns}
}

// Timeout in Failures.Infrastructure is a trial that ran into its deadline.
const Timeout = "timeout"

// stages are the words that Failures.Infrastructure takes.
func stages() []string {
	return []string{
		Timeout,
		targets.StageLoader, targets.StageEmergency, targets.StageHang, targets.StageHungTask, targets.StageEnded, targets.StageNoInit,
		targets.StageNoRoot, targets.StageUnpacked, targets.StageNotRebooted, targets.StageOops, targets.StagePanic, targets.StageRCU,
		targets.StageRefused, targets.StageLoop, targets.StageLockup, targets.StageRestart, targets.StageUnreachable,
		targets.StageWrongKernel, targets.StageWrongScheduler,
	}
}

// failures checks the block and completes it.
func (l *loader) failures(m *body, f Failures) Failures {
	in := m.find("failures")
	if in == nil {
		return f
	}
	if f.Retries < 0 || f.Retries > maxRetries {
		l.atAttr(in.body, "retries", fmt.Sprintf("must be from 0 to %d", maxRetries))
	}
	if f.Backoff < 0 {
		l.atAttr(in.body, "backoff", "must not be negative")
	}
	switch {
	case f.BackoffMax >= f.Backoff:
	case in.body.attrs["backoff_max"] == nil:
		f.BackoffMax = f.Backoff
	default:
		l.atAttr(in.body, "backoff_max", fmt.Sprintf("must not be shorter than backoff, which is %s", f.Backoff))
	}
	if words := []string{ComplaintWarns, ComplaintFails}; !contains(words, f.KernelComplaint) {
		a := in.body.attrs["kernel_complaint"]
		l.value(posOf(a.expr.Range()), didYouMean(f.KernelComplaint, words, "there are "+quoted(words)),
			"%q is nothing that follows a kernel's complaint", f.KernelComplaint)
	}
	for i, word := range f.Infrastructure {
		if a := in.body.attrs["infrastructure"]; !contains(stages(), word) {
			l.value(posOf(element(a.expr, i).Range()), didYouMean(word, stages(), "there are "+quoted(stages())),
				"%q is nothing that a boot ends in", word)
		}
	}
	return f
}
