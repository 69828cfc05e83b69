package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/validity"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// A kernel's complaint makes a trial invalid, or stands beside it, or fails it, as
// the target's failures block says.
func TestAKernelsComplaint(t *testing.T) {
	const flash, splat = "[   12.000000] jffs2: error: (1) x: CRC failed", "[   12.000000] WARNING: CPU: 0 PID: 1 at a.c:1 b"
	for _, c := range []struct {
		line, setting   string
		before, outcome results.Outcome
		reason, rule    string
	}{
		{flash, config.ComplaintWarns, results.OK, results.Invalid, "the kernel complained: [   12.000000] jffs2", "flash errors"},
		{splat, config.ComplaintWarns, results.OK, results.OK, "", "kernel complained"},
		{splat, "", results.OK, results.OK, "", "kernel complained"},
		{splat, config.ComplaintFails, results.OK, results.Failed, "the kernel complained: [   12.000000] WARNING", "kernel complained"},
		{flash, config.ComplaintFails, results.OK, results.Failed, "the kernel complained: [   12.000000] jffs2", "flash errors"},
		{flash, config.ComplaintFails, results.Failed, results.Failed, "exited with status 1", "flash errors"},
		{flash, config.ComplaintFails, results.Lost, results.Lost, "no link", ""},
		{"[   12.000000] eth0: link up", config.ComplaintFails, results.OK, results.OK, "", ""},
	} {
		run, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		dir, err := run.NewTrialDir(results.Slot{Cell: results.Cell{Target: "t", Kernel: "k", Workload: "w.x", Scenario: "y"}, Block: 1, Repeat: 1, Boot: 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		tr := &trial{session: &session{lane: &lane{r: &Runner{Run: run}, conf: &config.Target{Failures: config.Failures{KernelComplaint: c.setting}}}}, dir: dir}
		if err := os.WriteFile(filepath.Join(tr.dir, validity.NewLinesFile), []byte(c.line+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		rec := results.Record{Outcome: c.before, Parsed: &workloads.Parsed{}}
		if c.before != results.OK {
			rec.Reason = c.reason
		}
		tr.believe(t.Context(), &rec, validity.Witness{Log: &validity.LogWitness{TaintBefore: "0", TaintAfter: "0"}}, nil, nil)
		rule := ""
		if len(rec.Findings) > 0 {
			rule = rec.Findings[0].Rule
		}
		if rec.Outcome != c.outcome || !strings.HasPrefix(rec.Reason, c.reason) || c.reason == "" && rec.Reason != "" || rule != c.rule || len(rec.Findings) > 1 {
			t.Errorf("%q with %q: %s (%s), %+v", c.line, c.setting, rec.Outcome, rec.Reason, rec.Findings)
		}
	}
}

// What was judged can be judged again from the files, and stands in the journal.
func TestFindingsAndTheirEvidenceAreOnFile(t *testing.T) {
	work := &withPeer{echo{err: &workloads.InvalidError{Reason: "it lasted 4 s, not 10 s"}}}
	work.run = func(ctx context.Context, env *workloads.Env) error {
		err := env.Peer.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "true"}, Deadline: env.Deadline, Dir: env.Dir, Prefix: "peer-"})
		return errors.Join(err, env.Target.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "true"}, Deadline: env.Deadline, Dir: env.Dir, Ended: env.Ended}))
	}
	f := newFakeLab(t, map[string]workloads.Workload{"default": work})
	run, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range m.Trials {
		a := tr.Final()
		if a.Outcome != results.Invalid || validity.Hard(a.Findings) == nil || a.Findings[0].Text != a.Reason || a.Summary == nil || a.Peer == nil {
			t.Fatalf("%s: %s (%s), findings %+v, activity %v, the peer's %v", tr.Slot, a.Outcome, a.Reason, a.Findings, a.Summary, a.Peer)
		}
		dir := run.TrialDir(a.Slot, a.Number)
		var w validity.Witness
		b, err := os.ReadFile(filepath.Join(dir, validity.WitnessFile))
		if err == nil {
			err = json.Unmarshal(b, &w)
		}
		if err != nil || w.Workload != "echo" || w.Log == nil || w.Elapsed == nil {
			t.Errorf("%v: %s", err, b)
		}
		e, err := validity.Read(os.DirFS(dir), targets.BootRecord{})
		if err != nil || e.Spool == nil || len(e.Spool.States) != 2 || e.Peer == nil || e.Parsed == nil {
			t.Errorf("%v: %+v", err, e)
		}
	}
}
