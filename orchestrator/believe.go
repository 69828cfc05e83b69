package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/validity"
	"kernsweep/targets"
)

// witness is what only the controller knows of the trial.
func (t *trial) witness() validity.Witness {
	kind, _, _ := strings.Cut(t.slot.Workload, ".")
	own := targets.TraitsOf(t.target.Boot).Emulated || t.network().Clock == "guest"
	return validity.Witness{Workload: kind, Emulated: own, Knobs: t.drifted}
}

// lookAgain reads the kernel's log once more, and how much time passed. What the
// kernel said meanwhile goes on file whole.
func (t *trial) lookAgain(ctx context.Context, seen *validity.Witness) error {
	now, err := targets.ReadKernelLog(ctx, t.target.Held)
	if err != nil {
		return err
	}
	d := now.Since(t.before)
	seen.Log = &validity.LogWitness{TaintBefore: d.TaintBefore, TaintAfter: d.TaintAfter, Notes: d.Notes}
	for _, l := range []targets.KernelLog{t.before, now} {
		if l.Missing != "" {
			seen.Log.Missing, seen.Log.Notes = strings.Join(d.Notes, "; "), nil
			break
		}
	}
	if there, least, most, ok := now.Elapsed(t.before); ok {
		seen.Elapsed = &validity.Elapsed{Target: there, Least: least, Most: most}
	}
	if len(d.New) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(t.dir, validity.NewLinesFile), []byte(strings.Join(d.New, "\n")+"\n"), 0o666)
}

// believe applies the rules of validity and summarises what the machines did.
// parseErr is what the workload's reader said, moved what became of the boot.
func (t *trial) believe(ctx context.Context, rec *results.Record, seen validity.Witness, parseErr, moved error) {
	if err := t.r.Run.WriteJSON(filepath.Join(t.dir, validity.WitnessFile), seen); err != nil {
		t.note(ctx)(err.Error())
	}
	e, err := validity.Read(os.DirFS(t.dir), t.record)
	if err != nil {
		rec.Collect = strings.TrimSpace(rec.Collect + " " + err.Error())
	}
	e.Witness, e.Parsed, e.Err, e.Moved = seen, rec.Parsed, parseErr, moved // also where the disk is full
	rec.Summary, rec.Peer = activity(e.Spool), activity(e.Peer)
	switch rec.Outcome {
	case results.OK, results.Failed, results.Invalid:
	default:
		return // nothing is claimed
	}
	findings, unchecked := validity.Trial(e)
	rec.Findings = findings
	if seen.Log != nil {
		rec.Parsed.Notes = append(rec.Parsed.Notes, seen.Log.Notes...)
	}
	if len(unchecked) > 0 && e.Spool != nil {
		rec.Parsed.Notes = append(rec.Parsed.Notes, "not checked: "+strings.Join(unchecked, "; "))
	}
	if f := validity.Hard(findings); f != nil && rec.Outcome == results.OK {
		rec.Outcome, rec.Reason = results.Invalid, f.Text
	}
	if first := e.Complained(); first != "" && t.conf.Failures.KernelComplaint == config.ComplaintFails && rec.Outcome != results.Failed {
		rec.Outcome, rec.Reason = results.Failed, "the kernel complained: "+first
	}
}
