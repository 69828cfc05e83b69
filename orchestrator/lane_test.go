package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count says how many trials ended how.
func count(m *results.Model) map[results.Outcome]int { return m.Count() }

func TestSweepOnAHealthyTarget(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{value: 3}})
	run, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 || len(n) != 1 {
		t.Fatalf("outcomes %v, want 4 ok", n)
	}
	ids := map[string]bool{}
	for _, b := range m.Boots {
		if !b.Result.Record.Proven {
			t.Errorf("boot %d is not proven: %s", b.Number, b.Result.Record.Unproven)
		}
		ids[b.Result.Record.BootID] = true
	}
	if len(ids) != 4 {
		t.Errorf("%d boot_ids, want 4", len(ids))
	}
	for _, name := range []string{"boot.json", "console.log", "probe/cmdline", "echo.w.default.01/attempt-1/trial.json",
		"echo.w.default.01/attempt-1/spool", "echo.w.default.01/attempt-1/vmstat.csv"} {
		if _, err := os.Stat(filepath.Join(run.BootDir("box", 1), name)); err != nil {
			t.Error(err)
		}
	}
	if s := m.ExitStatus(); s != 0 {
		t.Errorf("exit status %d", s)
	}
}

func TestEndedIsWrittenBeforeJudged(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	run, _, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	j, err := run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range j.Records {
		if r.Kind == results.KindStarted || r.Kind == results.KindEnded || r.Kind == results.KindJudged {
			order = append(order, string(r.Kind))
		}
	}
	if got := strings.Join(order[:3], " "); got != "started ended judged" {
		t.Errorf("first records of a trial: %s", got)
	}
}

func TestKernelThatFailsToBoot(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Sweeps[0].Boots = 4
	f.m.fail = func(_ int, k string) error {
		if k == "b" {
			return &targets.BootError{Kernel: k, Stage: targets.StagePanic, LastLines: []string{"Kernel panic - not syncing: x"}, Err: errors.New("Kernel panic - not syncing: x")}
		}
		return nil
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := count(m)
	if n[results.OK] != 4 || n[results.BootFailed] != 2 || n[results.Skipped] != 2 {
		t.Fatalf("outcomes %v, want 4 ok, 2 boot-failed, then 2 skipped", n)
	}
	for _, tr := range m.Trials {
		if tr.Outcome() == results.Skipped && !strings.Contains(tr.Final().Reason, "failed 2 times here, first: panic: Kernel panic") {
			t.Errorf("reason of a skipped trial: %q", tr.Final().Reason)
		}
	}
	if s := m.ExitStatus(); s != 1 {
		t.Errorf("exit status %d, want 1", s)
	}
}

func TestWrongKernelBehindTheRightName(t *testing.T) {
	for name, change := range map[string]func(*fakeLab){
		"release":   func(f *fakeLab) { f.lab.Kernels[1].Release = "1.2.3*" },
		"scheduler": func(f *fakeLab) { f.lab.Kernels[1].Scheduler = "bfs" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
			change(f)
			_, m, err := f.execute(t, t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := count(m); n[results.OK] != 2 || n[results.BootFailed] != 2 {
				t.Fatalf("outcomes %v, want a's 2 ok and b's 2 boot-failed", n)
			}
		})
	}
}

func TestBrokenTargetIsQuarantined(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.fail = func(int, string) error { return errors.New("the PDU does not answer") }
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.Skipped] != 4 {
		t.Fatalf("outcomes %v, want 4 skipped", n)
	}
	if len(m.Lanes) != 1 || !m.Lanes[0].Quarantined || !strings.Contains(m.Lanes[0].Reason, "PDU") {
		t.Errorf("lane %+v does not carry the first cause", m.Lanes[0])
	}
	if s := m.ExitStatus(); s != 3 {
		t.Errorf("exit status %d, want 3", s)
	}
}

func TestOneInfrastructureFailureIsRetried(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.fail = func(n int, _ string) error {
		if n == 1 {
			return errors.New("the switch hiccuped")
		}
		return nil
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 {
		t.Fatalf("outcomes %v, want 4 ok", n)
	}
	if s := m.ExitStatus(); s != 0 {
		t.Errorf("exit status %d, want 0: the retry succeeded", s)
	}
}

func TestLostLinkIsAnotherAttempt(t *testing.T) {
	var f *fakeLab
	lost := false
	f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(ctx context.Context, env *workloads.Env) error {
		if !lost {
			lost = true
			f.m.mu.Lock()
			for _, c := range f.m.conns {
				c.cut()
			}
			f.m.mu.Unlock()
			return &targets.LinkError{Phase: "exec", Err: errors.New("the cable is out")}
		}
		return nil
	}}})
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 {
		t.Fatalf("outcomes %v, want 4 ok", n)
	}
	if a := m.Trials[0].Attempts; len(a) != 2 || a[0].Outcome != results.Lost || m.Trials[0].FirstFailure == "" {
		t.Errorf("first trial has attempts %+v", a)
	}
}

func TestLosingTheTargetAfterATimeoutIsStillATimeout(t *testing.T) {
	var f *fakeLab
	f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(_ context.Context, env *workloads.Env) error {
		env.Ended("timeout: still running after 3s")
		f.m.mu.Lock()
		defer f.m.mu.Unlock()
		for _, c := range f.m.conns {
			c.cut()
		}
		return &targets.LinkError{Phase: "transfer", Err: errors.New("gone while collecting")}
	}}})
	f.lab.Sweeps[0].Boots = 1
	run, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.Failed] != 2 || len(n) != 1 {
		t.Fatalf("outcomes %v, want 2 failed", n)
	}
	j, err := run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range j.Records {
		if r.Kind == results.KindJudged && (r.Outcome != results.Failed || !strings.Contains(r.Reason, "still running after 3s") ||
			!strings.Contains(r.Collect, "gone while collecting")) {
			t.Errorf("verdict %s, %q, beside it %q", r.Outcome, r.Reason, r.Collect)
		}
	}
}

func TestOutcomesOfAWorkload(t *testing.T) {
	for want, w := range map[results.Outcome]*echo{
		results.Failed:        {err: &workloads.FailedError{Reason: "no final line"}},
		results.Invalid:       {err: &workloads.InvalidError{Reason: "rate does not match"}},
		results.NotApplicable: {run: func(context.Context, *workloads.Env) error { return &workloads.UnavailableError{Reason: "no iperf"} }},
	} {
		f := newFakeLab(t, map[string]workloads.Workload{"default": w})
		_, m, err := f.execute(t, t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := count(m); n[want] != 4 {
			t.Errorf("%s: outcomes %v", want, n)
		}
	}
}

func TestRebootDuringATrialVoidsIt(t *testing.T) {
	var f *fakeLab
	f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
		f.m.renew("other")
		return nil
	}}})
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.Invalid] != 4 {
		t.Fatalf("outcomes %v, want 4 invalid", n)
	}
}

func TestInterruptedRunCanBeRerun(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	run, m, err := f.execute(t, ctx, func(r results.Record) {
		if r.Kind == results.KindJudged {
			if n++; n == 2 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if s := m.ExitStatus(); s != 130 {
		t.Errorf("exit status %d, want 130", s)
	}
	done := count(m)[results.OK]
	if done < 2 || done > 3 {
		t.Fatalf("%d trials ok before the interruption", done)
	}
	var whole plan.Plan
	p, err := plan.Expand(f.lab, f.lab.Sweeps[0], 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	whole = *p
	rest, err := whole.Select(f.lab, plan.Filter{}, func(s results.Slot) bool { x := m.Slot(s); return x == nil || x.Outcome() != results.OK })
	if err != nil {
		t.Fatal(err)
	}
	m, err = f.executeIn(t, t.Context(), run, rest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 || len(n) != 1 {
		t.Errorf("outcomes after the rerun %v, want 4 ok", n)
	}
	numbers := map[int]bool{}
	for _, b := range m.Boots {
		if numbers[b.Number] {
			t.Errorf("boot number %d was used twice", b.Number)
		}
		numbers[b.Number] = true
	}
}

func TestDeadlineIsAFailure(t *testing.T) {
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(ctx context.Context, env *workloads.Env) error {
		return env.Target.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sleep", "60"}, Deadline: 300 * time.Millisecond, Dir: env.Dir, Ended: env.Ended})
	}, err: &workloads.FailedError{Reason: "killed at its deadline"}}})
	f.lab.Sweeps[0].Boots = 1
	start := time.Now()
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.Failed] != 2 {
		t.Errorf("outcomes %v, want 2 failed", n)
	}
	if d := time.Since(start); d > 50*time.Second {
		t.Errorf("two deadlines of 300ms took %s", d)
	}
}
