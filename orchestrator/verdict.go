package orchestrator

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// writeEnded makes durable how the trial ended, before anything is collected
// (law 3). Only the first word counts.
func (t *trial) writeEnded(ctx context.Context, how string) {
	if t.ended {
		return
	}
	t.ended = true
	hand := t.helm.concludes()
	rec := results.Record{Kind: results.KindEnded, Slot: &t.slot, Attempt: t.attempt, Note: how}
	word, reason, _ := strings.Cut(how, ": ")
	switch word {
	case "timeout":
		rec.Outcome, rec.Reason = results.Failed, "it ran longer than its deadline and was ended: "+reason
		if t.conf.Failures.Excuses(config.Timeout) {
			rec.Outcome = results.Lost
		}
	case "failed":
		rec.Outcome, rec.Reason = results.Failed, reason
	case "link lost":
		rec.Outcome, rec.Reason = results.Lost, how
	}
	if hand != "" { // so that nobody who resumes the run takes it up again
		rec.Outcome, rec.Reason = results.Skipped, hand
	}
	t.how = rec
	t.lane.record(ctx, rec)
}

// end writes the ended record where the workload did not.
func (t *trial) end(ctx context.Context, err error) {
	how := "over"
	if err != nil {
		how = err.Error()
	}
	t.writeEnded(ctx, how)
}

// judge reads the evidence and fills in the verdict. The first cause wins:
// what ended the run, then what happened to the machine, then the raw files, then
// the rules of validity.
func (t *trial) judge(ctx context.Context, runErr error, rec *results.Record) {
	rec.Outcome, rec.Reason = t.classify(ctx, runErr)
	moved := runErr
	if e := t.crash(); e != nil && rec.Outcome != results.Interrupted {
		rec.Outcome, rec.Reason = results.BootFailed, e.Stage+" during the trial: "+e.Line
	}
	check, stop := t.short(ctx)
	defer stop()
	if rec.Outcome == results.OK || rec.Outcome == results.Failed {
		if err := targets.Recheck(check, t.target.Held, t.record); err != nil {
			rec.Outcome, rec.Reason = t.classify(ctx, err)
			moved = err
		}
	}
	if rec.Outcome == results.NotApplicable {
		return // it did not run: there is nothing to read
	}
	seen := t.witness()
	if rec.Outcome == results.OK || rec.Outcome == results.Failed {
		if err := t.lookAgain(check, &seen); err != nil {
			rec.Collect = "kernel log: " + err.Error()
		}
	}
	parsed, err := t.scenario.Run.Parse(os.DirFS(t.dir))
	parsed.Notes = append(parsed.Notes, t.notes...)
	if rec.Outcome == results.OK {
		rec.Outcome, rec.Reason = t.classify(ctx, err)
	} else if err != nil && rec.Outcome != results.Skipped && !errors.Is(err, fs.ErrNotExist) { // a trial that never began has no files
		rec.Collect = err.Error()
	}
	rec.Parsed = &parsed
	t.believe(ctx, rec, seen, err, moved)
	if rec.Outcome == results.Lost && t.how.Outcome == results.Failed {
		// How the trial ended stands; what was lost afterwards stands beside it (law 3).
		rec.Outcome, rec.Reason, rec.Collect = results.Failed, t.how.Reason, rec.Reason
	}
	t.excuse(ctx, rec)
}

// excuse blames nobody for what a power cut did that another lane caused.
func (t *trial) excuse(ctx context.Context, rec *results.Record) {
	switch rec.Outcome {
	case results.OK, results.Interrupted, results.NotApplicable, results.Skipped:
		return
	}
	if why := t.r.outages.cause(ctx, t.conf.Name, t.began); why != "" {
		rec.Collect = strings.TrimSpace(rec.Collect + " it ended with: " + rec.Reason)
		rec.Outcome, rec.Reason = results.Lost, why
	}
}

// crash is the first sign on the console, since the workload began, that the
// kernel does not survive.
func (t *trial) crash() *targets.ConsoleEvent {
	for _, e := range t.target.ConsoleEvents(t.mark) {
		if !targets.Survivable(e.Stage) {
			return &e
		}
	}
	return nil
}

// classify turns an error into an outcome and its reason.
func (t *trial) classify(ctx context.Context, err error) (results.Outcome, string) {
	var (
		failed  *workloads.FailedError
		invalid *workloads.InvalidError
		un      *workloads.UnavailableError
		reboot  *targets.RebootedError
		crash   *targets.BootError
	)
	switch {
	case err == nil:
		return results.OK, ""
	case byHand(ctx) != "":
		return results.Skipped, byHand(ctx)
	case ctx.Err() != nil:
		return results.Interrupted, context.Cause(ctx).Error()
	case t.r.disk(err) != nil:
		return results.Interrupted, err.Error()
	case errors.As(err, &failed):
		return results.Failed, failed.Reason
	case errors.As(err, &invalid):
		return results.Invalid, invalid.Reason
	case errors.As(err, &un):
		return results.NotApplicable, un.Reason
	case errors.As(err, &reboot):
		return results.Invalid, reboot.Error()
	case errors.As(err, &crash):
		return results.BootFailed, crash.Stage + ": " + crash.Err.Error()
	default:
		return results.Lost, err.Error()
	}
}

func isLink(err error) bool {
	var l *targets.LinkError
	return errors.As(err, &l)
}

// writeJSON leaves the verdict beside the raw files.
func (t *trial) writeJSON(ctx context.Context, rec results.Record) {
	if err := t.r.Run.WriteJSON(filepath.Join(t.dir, "trial.json"), rec); err != nil {
		t.note(ctx)(err.Error())
	}
}
