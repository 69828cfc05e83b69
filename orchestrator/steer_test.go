package orchestrator

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/orchestrator/control"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

const hand = "ada, kernsweep watch"

// steering is a fake lab whose runner a test asks, once a moment has come.
type steering struct {
	*fakeLab
	t    *testing.T
	mu   sync.Mutex
	said []string
	errs []error
	wg   sync.WaitGroup
}

// ask asks from another goroutine, as the socket does: observers hold the journal.
func (s *steering) ask(then func(), reqs ...control.Request) {
	s.wg.Go(func() {
		for _, q := range reqs {
			q.Lane, q.By = "box", hand
			said, err := s.runner.Steer(s.t.Context(), q)
			s.mu.Lock()
			s.said, s.errs = append(s.said, said), append(s.errs, err)
			s.mu.Unlock()
		}
		if then != nil {
			then()
		}
	})
}

// long is a task of the real agent that nobody waits for.
func long(ctx context.Context, env *workloads.Env) error {
	return env.Target.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sleep", "600"}, Deadline: env.Deadline, Dir: env.Dir, Ended: env.Ended})
}

// onTask calls f when a trial's first task is about to begin, for the nth time.
func onTask(n int, f func()) func(results.Record) {
	return func(r results.Record) {
		if r.Kind == results.KindTask {
			if n--; n == 0 {
				f()
			}
		}
	}
}

func kinds(t *testing.T, run *results.Run) string {
	t.Helper()
	j, err := run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	var s []string
	for _, r := range j.Records {
		s = append(s, strings.TrimSpace(string(r.Kind)+" "+string(r.Outcome)+" "+r.Note))
	}
	return strings.Join(s, "\n")
}

// A trial that is skipped ends on the target, and nothing else is lost.
func TestSkippedTrial(t *testing.T) {
	n := 0
	s := &steering{t: t}
	s.fakeLab = newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(ctx context.Context, env *workloads.Env) error {
		if n++; n == 2 {
			return long(ctx, env)
		}
		return nil
	}}})
	s.lab.Sweeps[0].Repeat = 2
	start := time.Now()
	run, m, err := s.execute(t, t.Context(), onTask(1, func() {
		s.ask(nil, control.Request{Action: control.SkipTrial, Why: "it hangs"}, control.Request{Action: control.SkipTrial})
	}))
	s.wg.Wait()
	if err != nil || s.errs[0] != nil || s.errs[1] != nil || !strings.Contains(s.said[0], "is being ended") {
		t.Fatalf("%v; said %q %v", err, s.said, s.errs)
	}
	// The second request came while the trial was being ended, or just after it.
	if c := count(m); c[results.OK]+c[results.Skipped] != 8 || c[results.Skipped] > 2 || c[results.Skipped] != m.ByHand("box") {
		t.Errorf("outcomes %v, %d by hand", c, m.ByHand("box"))
	}
	a := m.Trials[1].Final()
	if !a.ByHand() || a.Reason != "skipped by "+hand+": it hangs" || a.Ended.IsZero() || a.How == "" {
		t.Errorf("%+v", a)
	}
	if len(m.Boots) != 4 || m.ExitStatus() != 0 || time.Since(start) > time.Minute {
		t.Errorf("%d boots, exit status %d, after %s", len(m.Boots), m.ExitStatus(), time.Since(start))
	}
	if text := kinds(t, run); strings.Contains(text, "infrastructure failure") || !strings.Contains(text, "asked: skip-trial, by "+hand+": it hangs") {
		t.Errorf("journal:\n%s", text)
	}
	if out := Remaining(s.lab, planOf(t, s.fakeLab), m, Rerun{}); len(out.Lanes) != 0 {
		t.Errorf("resume would repeat %+v", out.Lanes)
	}
}

// Where no trial runs the next one is skipped.
func TestSkippedNextTrial(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
	asked := make(chan struct{})
	s.m.fail = func(n int, _ string) error {
		if n == 2 {
			s.ask(func() { close(asked) }, control.Request{Action: control.SkipTrial}, control.Request{Action: control.SkipTrial})
			<-asked
		}
		return nil
	}
	_, m, err := s.execute(t, t.Context(), nil)
	s.wg.Wait()
	if c := count(m); err != nil || c[results.OK] != 3 || c[results.Skipped] != 1 || m.Trials[1].Final().Outcome != results.Skipped {
		t.Errorf("%v; outcomes %v", err, c)
	}
	if len(s.said) != 2 || !strings.Contains(s.said[0], "the next one") || !strings.Contains(s.said[1], "already") {
		t.Errorf("said %q %v", s.said, s.errs)
	}
}

// A boot that hangs is cut short, and its kernel left out without being blamed.
func TestSkippedKernelInItsBoot(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
	s.lab.Targets[0].KnownGood = "a"
	s.lab.Targets[0].Timeout.Boot = 5 * time.Minute
	hangs := true
	s.m.fail = func(_ int, k string) error {
		if k == "b" && hangs {
			hangs = false
			s.m.off = true // and nothing answers
			s.ask(func() { s.m.supply(true) }, control.Request{Action: control.SkipKernel})
		}
		return nil
	}
	_, m, err := s.execute(t, t.Context(), nil)
	s.wg.Wait()
	if c := count(m); err != nil || c[results.OK] != 2 || c[results.Skipped] != 2 || m.ByHand("") != 2 || m.ExitStatus() != 0 {
		t.Errorf("%v; outcomes %v, status %d", err, c, m.ExitStatus())
	}
	for _, b := range m.Boots {
		if b.Result.Kernel == "b" && (b.Result.Outcome != results.Skipped || !strings.HasPrefix(b.Result.Reason, results.SkippedBy)) {
			t.Errorf("boot %d: %+v", b.Number, b.Result)
		}
	}
	for _, x := range m.Trials {
		if x.Slot.Kernel == "b" && x.Final().Reason != "skipped by "+hand+" (kernel b)" {
			t.Errorf("%q", x.Final().Reason)
		}
	}
	if s.m.boots[len(s.m.boots)-1] != "a" {
		t.Errorf("boots %v", s.m.boots)
	}
}

// A kernel is left out in the middle of one of its trials, and later by resume.
func TestSkippedKernelInATrial(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: long}})}
	s.lab.Kernels = s.lab.Kernels[:1]
	s.lab.Sweeps[0].Kernels, s.lab.Sweeps[0].Matrices[0].Kernels = []string{"a"}, []string{"a"}
	s.lab.Sweeps[0].Repeat = 2
	run, m, err := s.execute(t, t.Context(), onTask(1, func() {
		s.ask(nil, control.Request{Action: control.SkipKernel, Kernel: "x"}, control.Request{Action: control.SkipKernel, Kernel: "a"})
	}))
	s.wg.Wait()
	if c := count(m); err != nil || c[results.Skipped] != 4 || len(m.Boots) != 1 {
		t.Errorf("%v; outcomes %v, %d boots", err, c, len(m.Boots))
	}
	if s.errs[0] == nil || !strings.Contains(s.errs[0].Error(), `no kernel "x": it has a`) || s.errs[1] != nil {
		t.Errorf("%v", s.errs)
	}
	// It crashed after it was asked: whoever resumes it leaves the kernel out too.
	h := newHelm()
	h.inherit(m, "box", undertaking(m))
	if why := h.leftOut("a"); !strings.HasPrefix(why, "skipped by "+hand+" (kernel a, before") {
		t.Errorf("%q; journal:\n%s", why, kinds(t, run))
	}
	if h.inherit(m, "other", 1); h.leftOut("b") != "" {
		t.Error("of another lane")
	}
}

// A target that is given up is brought home, and nobody is blamed.
func TestGivenUp(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: long}})}
	s.lab.Targets[0].KnownGood = "b"
	run, m, err := s.execute(t, t.Context(), onTask(1, func() {
		s.ask(nil, control.Request{Action: control.Quarantine, Why: "its fan is loud"}, control.Request{Action: control.Quarantine}, control.Request{Action: control.SkipTrial})
	}))
	s.wg.Wait()
	if c := count(m); err != nil || c[results.Skipped] != 4 || m.ByHand("") != 4 || m.ExitStatus() != 0 {
		t.Errorf("%v; outcomes %v, status %d", err, c, m.ExitStatus())
	}
	l := m.Lane("box")
	if !l.Quarantined || !l.ByHand || l.Reason != "skipped by "+hand+" (target box): its fan is loud" || l.Ended.IsZero() {
		t.Errorf("%+v", l)
	}
	if last := s.m.boots[len(s.m.boots)-1]; last != "b" || len(m.Boots) != 1 {
		t.Errorf("boots %v, %d recorded; journal:\n%s", s.m.boots, len(m.Boots), kinds(t, run))
	}
	if s.errs[0] != nil || s.errs[1] != nil || s.errs[2] == nil {
		t.Errorf("%q %v", s.said, s.errs)
	}
}

// What waits for others does not begin once its lane is paused, and is cut off by
// the other hands.
func TestHandsOnWhatWaits(t *testing.T) {
	for action, want := range map[control.Action]results.Outcome{control.Pause: results.OK, control.SkipTrial: results.Skipped, control.SkipKernel: results.Skipped, control.Quarantine: results.Skipped} {
		t.Run(string(action), func(t *testing.T) {
			s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
			s.lab.Targets[0].Uses = []string{"lan0"}
			s.lab.Sweeps[0].Boots = 1
			release := func() {}
			_, m, err := s.execute(t, t.Context(), func(r results.Record) {
				if r.Kind != results.KindBoot || r.Boot.Number != 1 {
					return
				}
				free, err := s.runner.locks.acquire(t.Context(), "uses:lan0")
				if err != nil {
					t.Error(err)
				}
				release = sync.OnceFunc(free)
				s.wg.Go(func() {
					tick := time.NewTicker(5 * time.Millisecond)
					defer tick.Stop()
					for h := s.runner.lanes[0].helm; t.Context().Err() == nil; <-tick.C {
						h.mu.Lock()
						waits := h.now != nil && h.now.trial && h.now.waiting
						h.mu.Unlock()
						if waits {
							break
						}
					}
					s.ask(func() {
						if action == control.Pause {
							s.ask(release, control.Request{Action: control.GoOn})
						} else {
							release()
						}
					}, control.Request{Action: action})
				})
			})
			s.wg.Wait()
			if got := m.Trials[0].Final().Outcome; err != nil || got != want || m.Trials[0].Attempts[0].Number != 1 || len(m.Trials[0].Attempts) != 1 {
				t.Errorf("%v: %s; %q %v", err, got, s.said, s.errs)
			}
		})
	}
}

// Requests that cannot be obeyed say why.
func TestSteerRefuses(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
	var early error
	_, _, err := s.execute(t, t.Context(), func(r results.Record) {
		if r.Kind == results.KindRun && early == nil {
			_, early = s.runner.Steer(t.Context(), control.Request{Action: control.Pause, Lane: "box", By: hand})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, late := s.runner.Steer(t.Context(), control.Request{Action: control.Pause, Lane: "box", By: hand})
	for _, e := range []error{early, late} {
		if e == nil || !strings.Contains(e.Error(), "has not begun yet, or the run is at its end") {
			t.Errorf("%v", e)
		}
	}
	for q, want := range map[control.Request]string{
		{Action: control.Pause, Lane: "bx", By: hand}:   `no lane "bx" in this session of the run; its lanes: box`,
		{Action: control.Stop, By: hand}:                "the process that executes",
		{Action: "dance", Lane: "box", By: hand}:        "dance",
		{Action: control.SkipTrial, By: hand}:           "of which lane?",
		{Action: control.SkipKernel, Lane: "b", By: ""}: "who asks",
	} {
		if _, err := s.runner.Steer(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

var _ control.Steered = (*Runner)(nil)

// Many hands at once, at any moment: the run ends, and every slot has an outcome.
func TestManyHands(t *testing.T) {
	s := &steering{t: t, fakeLab: newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})}
	s.lab.Sweeps[0].Repeat, s.lab.Sweeps[0].Boots = 2, 3
	s.m.fail = func(n int, k string) error {
		if n == 3 {
			return &targets.BootError{Kernel: k, Stage: targets.StagePanic, Err: context.DeadlineExceeded}
		}
		return nil
	}
	done := make(chan struct{})
	var once sync.Once
	_, m, err := s.execute(t, t.Context(), func(r results.Record) {
		if r.Kind != results.KindPhase {
			return
		}
		once.Do(func() {
			for _, a := range []control.Action{control.Pause, control.GoOn, control.SkipTrial, control.GoOn} {
				s.wg.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-done:
							return
						case <-time.After(time.Duration(7+i%5*11) * time.Millisecond):
						}
						_, _ = s.runner.Steer(t.Context(), control.Request{Action: a, Lane: "box", By: hand}) // refusals are fine
					}
				})
			}
		})
	})
	close(done)
	s.wg.Wait()
	n := 0
	for o, c := range count(m) {
		if o == results.Interrupted || o == results.Lost {
			t.Errorf("%d %s", c, o)
		}
		n += c
	}
	if err != nil || n != 12 {
		t.Errorf("%v: %d outcomes %v", err, n, count(m))
	}
}
