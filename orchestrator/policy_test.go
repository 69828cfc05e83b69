package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		first, most time.Duration
		row         int
		want        time.Duration
	}{
		{5 * time.Second, 5 * time.Minute, 0, 5 * time.Second},
		{5 * time.Second, 5 * time.Minute, 1, 5 * time.Second},
		{5 * time.Second, 5 * time.Minute, 2, 10 * time.Second},
		{5 * time.Second, 5 * time.Minute, 6, 160 * time.Second},
		{5 * time.Second, 5 * time.Minute, 7, 5 * time.Minute},
		{5 * time.Second, 5 * time.Minute, 1_000_000, 5 * time.Minute},
		{time.Minute, time.Minute, 3, time.Minute},
		{time.Hour, time.Minute, 1, time.Minute},
		{1, 1<<63 - 1, 100, 1<<63 - 1},
		{0, 5 * time.Minute, 4, 0},
		{-time.Second, time.Minute, 4, 0},
	} {
		if got := backoff(c.first, c.most, c.row); got != c.want {
			t.Errorf("backoff(%s, %s, %d) = %s, want %s", c.first, c.most, c.row, got, c.want)
		}
	}
}

// bareLane is a lane with a journal and nothing else.
func bareLane(t *testing.T, conf config.Target) (*lane, *results.Run) {
	t.Helper()
	run, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	conf.Name = "box"
	r := &Runner{Run: run, Journal: w, Log: zap.NewNop(), night: newNight(time.Time{}), Plan: &plan.Plan{}}
	return &lane{r: r, conf: &conf, target: &targets.Target{Name: "box"}, log: r.Log, standing: newStanding(), helm: newHelm(),
		costs: plan.NewCosts(&config.Lab{}, r.Plan, "box", plan.History{})}, run
}

func TestPausesAreDoubledAndBounded(t *testing.T) {
	l, _ := bareLane(t, config.Target{Quarantine: 100, Failures: config.Failures{Backoff: 5 * time.Second, BackoffMax: time.Minute}})
	var got []time.Duration
	synctest.Test(t, func(t *testing.T) {
		l.r.night = newNight(time.Time{})
		for l.infra = 1; l.infra <= 6; l.infra++ {
			start := time.Now()
			l.pause(t.Context(), "")
			got = append(got, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		l.pause(ctx, "")
		l.withdrawn = "given up"
		l.pause(t.Context(), "")
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %s after Ctrl-C, or for a target that is given up", d)
		}
	})
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("waited %s, want %s", got, want)
	}
}

func hangs(k string) error {
	return &targets.BootError{Kernel: k, Stage: targets.StageHang, Err: errors.New("silent for 1m0s after: sda: sda1")}
}

// A silent hang of a target whose power is flaky is tried again, when its failures
// block says so; a panic is the kernel's all the same.
func TestWhatCountsAsInfrastructure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		excused []string
		fail    error // the first boot of b
		want    string
	}{
		{"a hang", nil, hangs("b"), "map[boot-failed:1 ok:3]"},
		{"an excused hang", []string{targets.StageHang}, hangs("b"), "map[ok:4]"},
		{"a panic beside an excused hang", []string{targets.StageHang}, panics("b"), "map[boot-failed:1 ok:3]"},
		{"an excused panic", []string{targets.StagePanic}, panics("b"), "map[ok:4]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
			f.lab.Targets[0].Failures.Infrastructure = c.excused
			first := true
			f.m.fail = func(_ int, k string) error {
				if k == "b" && first {
					first = false
					return c.fail
				}
				return nil
			}
			_, m, err := f.execute(t, t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(count(m)); got != c.want {
				t.Errorf("outcomes %s, want %s", got, c.want)
			}
			said := strings.Contains(notes(m, "box"), "kernel b is not blamed for")
			if excused := len(c.excused) > 0 && !strings.Contains(c.name, "beside"); said != excused {
				t.Errorf("notes: %s", notes(m, "box"))
			}
			f.remembers(t, m)
		})
	}
}

// remembers compares what the lane knew at its end with what the journal says.
func (f *fakeLab) remembers(t *testing.T, m *results.Model) {
	t.Helper()
	for _, l := range f.runner.lanes {
		if d := cmp.Diff(l.standing, policyBefore(m, l.conf.Name), cmp.AllowUnexported(standing{})); d != "" {
			t.Errorf("lane %s: what it knew, and what the journal says (-, +):\n%s", l.conf.Name, d)
		}
	}
}

// A kernel that hangs each time, on a target where that is excused, costs its own
// trials and no other's.
func TestAnExcusedHangEachTime(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Targets[0].Failures.Infrastructure, f.lab.Targets[0].Quarantine = []string{targets.StageHang}, 5
	f.m.fail = func(_ int, k string) error {
		if k == "b" {
			return hangs("b")
		}
		return nil
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(count(m)); got != "map[lost:2 ok:2]" || laneOf(t, m, "box").Quarantined {
		t.Errorf("outcomes %s", got)
	}
	for _, tr := range m.Trials {
		if a := tr.Final(); a.Outcome == results.Lost && a.Reason != "hang: silent for 1m0s after: sda: sda1 (infrastructure by the target's failures block; 2 tries)" {
			t.Errorf("lost: %s", a.Reason)
		}
	}
	if n := len(f.m.boots); n != 6 {
		t.Errorf("%d boots, want 2 of a, and 4 tries of b", n)
	}
	if s := m.ExitStatus(); s != results.ExitInfrastructure {
		t.Errorf("exit status %d for lost trials", s)
	}
	for _, b := range m.Boots {
		if r := b.Result; r.Kernel == "b" && (r.Outcome != results.Lost || r.Stage != targets.StageHang) {
			t.Errorf("boot %d: %s, %q", b.Number, r.Outcome, r.Stage)
		}
	}
	f.remembers(t, m)
}

func TestRetriesOfALostLink(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]string{0: "map[lost:1 ok:3]", 1: "map[lost:1 ok:3]", 2: "map[ok:4]"} {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			t.Parallel()
			var f *fakeLab
			lost := 0
			f = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
				if lost++; lost > 2 || lost > retries+1 {
					return nil
				}
				f.m.mu.Lock()
				defer f.m.mu.Unlock()
				f.m.cut()
				return &targets.LinkError{Phase: "exec", Err: errors.New("the cable is out")}
			}}})
			f.lab.Targets[0].Failures.Retries, f.lab.Targets[0].Quarantine = retries, 5
			_, m, err := f.execute(t, t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(count(m)); got != want || len(m.Trials[0].Attempts) != min(retries+1, 3) {
				t.Errorf("outcomes %s after %d attempts, want %s", got, len(m.Trials[0].Attempts), want)
			}
			f.remembers(t, m)
		})
	}
}

// The cause of a quarantine stands whole with the lane; its trials carry its
// beginning.
func TestQuarantineCarriesItsFirstCause(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	_, other := f.addMachine(t, "other")
	other.Quarantine = 3
	f.lab.Targets[0].Quarantine = 3
	long := "the PDU at 192.0.2.7 does not answer: " + strings.Repeat("no route ", 30)
	f.m.fail = func(n int, _ string) error {
		if n == 1 {
			return errors.New(long)
		}
		return errors.New("connection refused")
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := laneOf(t, m, "box")
	if !strings.Contains(l.Reason, long) || !strings.Contains(l.Reason, "; last: ") || !strings.HasSuffix(l.Reason, "connection refused") {
		t.Errorf("the lane's cause: %s", l.Reason)
	}
	for _, tr := range m.Trials {
		a := tr.Final()
		if tr.Slot.Target == "box" && (a.Outcome != results.Skipped || !strings.HasPrefix(a.Reason, "target quarantined: target box: ") ||
			!strings.Contains(a.Reason, "the PDU at 192.0.2.7") || len(a.Reason) > 200) {
			t.Errorf("%s: %s", a.Outcome, a.Reason)
		}
	}
	if perKernel(m, "other") != "a 2, b 2" {
		t.Error("the other lane: ", perKernel(m, "other"))
	}
	f.remembers(t, m)
}

// What a controller has learnt, its successor knows, wherever it was stopped.
func TestPolicyBefore(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Sweeps[0].Boots, f.lab.Targets[0].Quarantine = 6, 4
	f.lab.Targets[0].Failures.Infrastructure = []string{targets.StageUnreachable}
	f.m.fail = func(n int, k string) error {
		switch {
		case n == 2 || n == 3 || n >= 7:
			return fmt.Errorf("failure at boot %d", n)
		case n == 5:
			return &targets.BootError{Kernel: k, Stage: targets.StageUnreachable, Err: errors.New("no answer")}
		case k == "b":
			return panics(k)
		}
		return nil
	}
	var at []standing // after each record
	run, _, err := f.execute(t, t.Context(), func(r results.Record) {
		s := newStanding()
		if len(f.runner.lanes) > 0 {
			l := f.runner.lanes[0].standing
			s.infra, s.cause, s.withdrawn = l.infra, l.cause, l.withdrawn
			for k, n := range l.crashes {
				s.crashes[k], s.crash[k] = n, l.crash[k]
			}
			for k, n := range l.lost {
				s.lost[k] = n
			}
		}
		at = append(at, s)
	})
	if err != nil {
		t.Fatal(err)
	}
	j, err := run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, r := range j.Records {
		if r.Kind != results.KindPhase && r.Kind != results.KindStarted {
			continue // between a verdict and its consequences the two may differ
		}
		compared++
		if d := cmp.Diff(at[i], policyBefore(results.Load(j.Records[:i+1]), "box"), cmp.AllowUnexported(standing{})); d != "" {
			t.Errorf("stopped after record %d, %s: what it knew, and what the journal says (-, +):\n%s", i, r.Kind, d)
		}
	}
	if compared < 10 {
		t.Errorf("%d places compared", compared)
	}
	end := policyBefore(results.Load(j.Records), "box")
	if end.withdrawn == "" || !strings.Contains(end.withdrawn, "failure at boot 7") {
		t.Errorf("given up because of %q", end.withdrawn)
	}
	if cut := policyBefore(results.Load(j.Records[:len(j.Records)-2]), "box"); cut.withdrawn != end.withdrawn {
		t.Errorf("without the lane's last record: %q", cut.withdrawn)
	}
	f.remembers(t, results.Load(j.Records))
	if s := policyBefore(nil, "box"); s.infra != 0 || s.crashes == nil {
		t.Error("a run without a past")
	}
	if s := policyBefore(results.Load(j.Records), "other"); s.infra != 0 || s.withdrawn != "" {
		t.Error("another lane's past")
	}
}

// A resumed lane that was given up stays so, untouched; a rerun tries again.
func TestQuarantineSurvivesResume(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.fail = func(int, string) error { return errors.New("the PDU does not answer") }
	p := planOf(t, f)
	run, err := results.Create(t.TempDir(), p.Sweep, results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := f.executeIn(t, ctx, run, p, func(r results.Record) {
		if r.Outcome == results.Skipped {
			cancel() // in the middle of writing off its trials
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	boots := len(f.m.boots)
	f.m.fail, f.resume = nil, true
	m, err := f.executeIn(t, t.Context(), run, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.Skipped] != 4 || len(f.m.boots) != boots || !laneOf(t, m, "box").Quarantined {
		t.Errorf("outcomes %v, %d more boots", n, len(f.m.boots)-boots)
	}
	f.resume = false
	m, err = f.executeIn(t, t.Context(), run, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 || laneOf(t, m, "box").Quarantined {
		t.Errorf("a rerun: outcomes %v", n)
	}
}

// What cuts a trial off is judged like what ends a boot.
func TestPardon(t *testing.T) {
	for _, c := range []struct {
		outcome results.Outcome
		reason  string
		want    results.Outcome
	}{
		{results.BootFailed, "unexpected restart during the trial: U-Boot 2021.07", results.Lost},
		{results.BootFailed, "unexpected restart: U-Boot 2021.07", results.Lost},
		{results.BootFailed, "panic during the trial: Kernel panic - not syncing: unexpected restart: x", results.BootFailed},
		{results.Failed, "unexpected restart: of the program", results.Failed},
		{results.OK, "", results.OK},
	} {
		l, _ := bareLane(t, config.Target{Failures: config.Failures{Infrastructure: []string{targets.StageRestart}}})
		rec := results.Record{Outcome: c.outcome, Reason: c.reason}
		(&trial{session: &session{lane: l, kernel: "a"}}).pardon(t.Context(), &rec)
		if rec.Outcome != c.want || rec.Reason != c.reason {
			t.Errorf("%s, %q: %s, %q", c.outcome, c.reason, rec.Outcome, rec.Reason)
		}
	}
}

// An outlet that is another machine's ends a lane at once, also for who resumes it.
func TestPolicyBeforeOfAWrongOutlet(t *testing.T) {
	l, run := bareLane(t, config.Target{Quarantine: 3})
	l.failed(t.Context(), errors.New("the switch hiccuped"))
	l.failed(t.Context(), fmt.Errorf("boot 2:\nof two lines: %w", &targets.OutletError{}))
	state, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	if s := policyBefore(state.Model, "box"); s.withdrawn != l.withdrawn || !strings.HasPrefix(s.withdrawn, "boot 2:\nof two lines: ") {
		t.Errorf("given up because of %q, want %q", s.withdrawn, l.withdrawn)
	}
}

// A trial that ran into its deadline is its own failure, unless that is excused.
func TestExcusedTimeout(t *testing.T) {
	t.Parallel()
	for want, excused := range map[string][]string{"map[failed:1 ok:3]": nil, "map[ok:4]": {config.Timeout}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			e, first := &echo{}, true
			e.run = func(_ context.Context, env *workloads.Env) error {
				if e.err = nil; first {
					first = false
					env.Ended("timeout: still running after 3s")
					e.err = &workloads.FailedError{Reason: "killed at its deadline"}
				}
				return nil
			}
			f := newFakeLab(t, map[string]workloads.Workload{"default": e})
			f.lab.Targets[0].Failures.Infrastructure = excused
			_, m, err := f.execute(t, t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(count(m)); got != want {
				t.Errorf("outcomes %s, want %s", got, want)
			}
			if a := m.Trials[0].Attempts[0]; excused != nil && (a.Outcome != results.Lost || !strings.Contains(a.Reason, "still running after 3s")) {
				t.Errorf("the first attempt: %s, %s", a.Outcome, a.Reason)
			}
			f.remembers(t, m)
		})
	}
}
