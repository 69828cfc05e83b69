package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// fakeTime is a wall clock and one that never jumps, moved by hand.
type fakeTime struct {
	mu      sync.Mutex
	wall    time.Time
	elapsed time.Duration
}

func newFakeTime() *fakeTime {
	return &fakeTime{wall: time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)}
}

func (f *fakeTime) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wall
}

func (f *fakeTime) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall, f.elapsed = f.wall.Add(d), f.elapsed+d
}

func (f *fakeTime) set(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wall = f.wall.Add(d)
}

// until is a night that ends in d.
func (f *fakeTime) until(d time.Duration) *night {
	return &night{until: f.now().Add(d), wall: f.now, elapsed: func() time.Duration {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.elapsed
	}}
}

// nightLab is a lab whose boots take 10 minutes and whose trials 5, of a clock
// moved by hand: a block of its two kernels takes half an hour.
func nightLab(t *testing.T, until time.Duration) (*fakeLab, *fakeTime) {
	clock := newFakeTime()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{run: func(context.Context, *workloads.Env) error {
		clock.pass(5 * time.Minute)
		return nil
	}}})
	f.lab.Sweeps[0].Boots = 3
	f.m.fail = func(int, string) error {
		clock.pass(10 * time.Minute)
		return nil
	}
	f.night = clock.until(until)
	f.expect(10*time.Minute, 5*time.Minute)
	return f, clock
}

// expect makes the plan think that boots and trials take so long.
func (f *fakeLab) expect(boot, trial time.Duration) {
	f.history = plan.History{Boot: map[string]time.Duration{}, Trial: map[results.Cell]time.Duration{}}
	for _, t := range f.lab.Targets {
		f.history.Boot[t.Name] = boot
		for _, k := range f.lab.Kernels {
			f.history.Trial[results.Cell{Target: t.Name, Kernel: k.Name, Workload: "echo.w", Scenario: "default"}] = trial
		}
	}
}

// overnight runs the lab and checks what holds of every night with an end: nothing
// begins after it, nothing that was begun ends after it by more than late, what is
// left out has no verdict, and all that was planned is either measured or left out.
func (f *fakeLab) overnight(t *testing.T, late time.Duration) *results.Model {
	t.Helper()
	var last time.Time
	_, m, err := f.execute(t, t.Context(), func(r results.Record) {
		now := f.night.wall()
		if (r.Kind == results.KindStarted || r.Kind == results.KindPhase) && now.After(f.night.until) {
			t.Errorf("%s began at %s, after %s", r.Kind, now, f.night.until)
		}
		if r.Kind == results.KindJudged {
			last = now
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if over := last.Sub(f.night.until); over > late {
		t.Errorf("the last verdict came %s after the end", over)
	}
	planned := map[string]int{}
	for _, l := range planOf(t, f).Lanes {
		planned[l.Target] += plan.Counted(l.Boots)
	}
	for _, tr := range m.Trials {
		planned[tr.Slot.Target]--
	}
	for _, l := range m.Lanes {
		left := 0
		if l.Cut != nil {
			left = l.Cut.Trials
			if !l.Cut.Until.Equal(f.night.until) {
				t.Errorf("lane %s was cut for %s", l.Name, l.Cut.Until)
			}
		}
		if planned[l.Name] != left {
			t.Errorf("lane %s has %d trials without a verdict, and left %d out", l.Name, planned[l.Name], left)
		}
	}
	return m
}

// perKernel counts the trials that ended ok.
func perKernel(m *results.Model, target string) string {
	n := map[string]int{}
	for _, tr := range m.Trials {
		if tr.Slot.Target == target && tr.Outcome() == results.OK {
			n[tr.Slot.Kernel]++
		}
	}
	return fmt.Sprintf("a %d, b %d", n["a"], n["b"])
}

func TestUntilMeasuresWholeBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		until time.Duration
		want  string
		block int // that is cut; 0 = none
	}{
		{91 * time.Minute, "a 3, b 3", 0},
		{90 * time.Minute, "a 2, b 2", 3}, // the way home needs some seconds
		{31 * time.Minute, "a 1, b 1", 2},
	} {
		f, _ := nightLab(t, c.until)
		m := f.overnight(t, 0)
		l := laneOf(t, m, "box")
		if got := perKernel(m, "box"); got != c.want {
			t.Errorf("until %s: %s, want %s", c.until, got, c.want)
		}
		if (l.Cut == nil) != (c.block == 0) || l.Cut != nil && l.Cut.Block != c.block {
			t.Errorf("until %s: cut %+v, want block %d", c.until, l.Cut, c.block)
		}
		if s := m.ExitStatus(); s != 0 {
			t.Errorf("until %s: exit status %d: what is left out is no failure", c.until, s)
		}
	}
}

// Where everything takes longer than was thought, what was seen decides: of the
// next block, of the next boot, of the next trial.
func TestUntilLearnsFromTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		until time.Duration
		want  string
		block int
	}{
		{55 * time.Minute, "a 1, b 1", 2}, // 3 blocks were thought to take 12 minutes
		{29 * time.Minute, "a 0, b 1", 1}, // b is first; a would end at 30 minutes
		{12 * time.Minute, "a 0, b 1", 1}, // the first trial was thought to take a minute
	} {
		f, _ := nightLab(t, c.until)
		f.expect(time.Minute, time.Minute)
		if f.night.until.Sub(f.night.wall()) < 16*time.Minute {
			f.lab.Sweeps[0].Boots = 1
		}
		m := f.overnight(t, 4*time.Minute)
		if got := perKernel(m, "box"); got != c.want {
			t.Errorf("until %s: %s, want %s", c.until, got, c.want)
		}
		if l := laneOf(t, m, "box"); l.Cut == nil || l.Cut.Block != c.block {
			t.Errorf("until %s: cut %+v, want block %d", c.until, l.Cut, c.block)
		}
	}
}

// A boot that took most of the time leaves its trials out.
func TestUntilBeginsNoTrialThatIsTooLong(t *testing.T) {
	t.Parallel()
	f, clock := nightLab(t, 70*time.Minute)
	f.m.fail = func(n int, _ string) error {
		clock.pass(10 * time.Minute)
		if n == 3 {
			clock.pass(28 * time.Minute)
		}
		return nil
	}
	m := f.overnight(t, 0)
	if got := perKernel(m, "box"); got != "a 1, b 1" {
		t.Error(got)
	}
	l := laneOf(t, m, "box")
	if l.Cut == nil || l.Cut.Block != 2 || l.Cut.Trials != 4 || len(m.Boots) != 3 {
		t.Errorf("cut %+v after %d boots, want 4 trials from block 2 on after 3", l.Cut, len(m.Boots))
	}
}

// A lane without time for its first block is not even contacted; the other goes on.
func TestUntilLeavesALaneAlone(t *testing.T) {
	t.Parallel()
	f, clock := nightLab(t, 65*time.Minute)
	f.lab.Sweeps[0].Boots = 2
	slow, target := f.addMachine(t, "slow")
	slow.traits.Running = true // its boot method has to ask it
	target.Settle = 30 * time.Minute
	slow.fail = func(int, string) error {
		clock.pass(time.Minute)
		return nil
	}
	f.expect(10*time.Minute, 5*time.Minute)
	m := f.overnight(t, 0)
	if got := perKernel(m, "box"); got != "a 2, b 2" {
		t.Error(got)
	}
	slow.mu.Lock()
	defer slow.mu.Unlock()
	if l := laneOf(t, m, "slow"); l.Cut == nil || l.Cut.Block != 1 || l.Cut.Trials != 4 || len(slow.conns) > 0 || len(slow.boots) > 0 {
		t.Errorf("cut %+v, %d connections, boots %v", l.Cut, len(slow.conns), slow.boots)
	}
}

// What is skipped takes no time, and is no business of --until.
func TestUntilAndSkippedTrials(t *testing.T) {
	t.Parallel()
	f, clock := nightLab(t, 100*time.Minute)
	f.lab.Targets[0].Quarantine = 1
	f.m.fail = func(n int, _ string) error {
		clock.pass(10 * time.Minute)
		if n == 3 {
			clock.pass(200 * time.Minute)
			return errors.New("the PDU does not answer")
		}
		return nil
	}
	m := f.overnight(t, time.Hour*24)
	if n := count(m); n[results.OK] != 2 || n[results.Skipped] != 4 {
		t.Errorf("outcomes %v, want 2 ok and 4 skipped", n)
	}
	for _, tr := range m.Trials {
		if tr.Outcome() == results.Skipped && !strings.HasPrefix(tr.Final().Reason, "target quarantined: ") {
			t.Errorf("skipped: %s", tr.Final().Reason)
		}
	}
}

// A pause after a failure that would last until the end is not waited for.
func TestUntilEndsAPause(t *testing.T) {
	t.Parallel()
	f, clock := nightLab(t, 45*time.Minute)
	f.lab.Targets[0].Failures.Backoff, f.lab.Targets[0].Failures.BackoffMax = time.Hour, time.Hour
	f.lab.Targets[0].Quarantine = 5
	f.m.fail = func(n int, _ string) error {
		clock.pass(5 * time.Minute)
		if n == 2 {
			return errors.New("the switch hiccuped")
		}
		return nil
	}
	m := f.overnight(t, 0)
	if l := laneOf(t, m, "box"); l.Cut == nil || l.Cut.Block != 1 || l.Cut.Trials != 5 {
		t.Errorf("cut %+v", l.Cut)
	}
	if !strings.Contains(notes(m, "box"), "the pause after a failure, or the wait for what others use, would not be over in the 30m") {
		t.Error(notes(m, "box"))
	}
}

// The wall clock is set in the middle of the night: it is what --until means.
func TestUntilWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	for by, want := range map[time.Duration]string{5 * time.Hour: "a 0, b 1", -5 * time.Hour: "a 3, b 3"} {
		f, clock := nightLab(t, 62*time.Minute)
		n := 0
		run := f.m.fail
		f.m.fail = func(b int, k string) error {
			if n++; n == 2 {
				clock.set(by)
			}
			return run(b, k)
		}
		_, m, err := f.execute(t, t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := perKernel(m, "box"); got != want {
			t.Errorf("by %s: %s, want %s", by, got, want)
		}
	}
}

// A real night without an end, or with one far away, disturbs nothing.
func TestNightOfTheRealClock(t *testing.T) {
	t.Parallel()
	if _, ends := newNight(time.Time{}).left(); ends {
		t.Error("it ends")
	}
	n := newNight(time.Now().Add(time.Hour))
	if left, ends := n.left(); !ends || left > time.Hour || left < 59*time.Minute {
		t.Error(left, ends)
	}
}

// A trial that waits for what others use, until it is too late, is not begun.
func TestUntilBoundsAWait(t *testing.T) {
	t.Parallel()
	l, _ := bareLane(t, config.Target{})
	clock := newFakeTime()
	l.r.night, l.r.locks = clock.until(perhaps(l)+50*time.Millisecond), newLocks(nil)
	s := &session{lane: l, kernel: "a"}
	cell := results.Cell{Target: "box", Kernel: "a", Workload: "echo.w", Scenario: "default"}
	release, err := s.turn(t.Context(), cell, []string{"uses:lan0"})
	if err != nil || s.noTime {
		t.Fatal(err, s.noTime)
	}
	if _, err := s.turn(t.Context(), cell, []string{"uses:lan0"}); !errors.Is(err, errTooLate) || !s.noTime {
		t.Errorf("it waited for a thing in use: %v, %v", err, s.noTime)
	}
	release()
	s.noTime = false
	clock.pass(time.Hour)
	if _, err := s.turn(t.Context(), cell, []string{"uses:lan0"}); !errors.Is(err, errTooLate) || !s.noTime {
		t.Errorf("it began too late: %v, %v", err, s.noTime)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.noTime = false
	if _, err := s.turn(ctx, cell, []string{"uses:lan0"}); errors.Is(err, errTooLate) || s.noTime {
		t.Errorf("after Ctrl-C: %v, %v", err, s.noTime)
	}
}

// perhaps is what a trial and the way home are thought to take.
func perhaps(l *lane) time.Duration {
	return l.costs.Trial(results.Cell{}) + l.costs.Home("a")
}
