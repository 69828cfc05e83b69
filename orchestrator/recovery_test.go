package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// addMachine gives the lab another target that the sweep uses.
func (f *fakeLab) addMachine(t *testing.T, name string) (*machine, *config.Target) {
	m := newMachine(t)
	c := *f.lab.Targets[0]
	c.Target.Name, c.Target.Boot, c.Target.SSH.Host = name, m, name
	f.lab.Targets = append(f.lab.Targets, &c)
	matrix := &f.lab.Sweeps[0].Matrices[0]
	matrix.Targets = append(matrix.Targets, name)
	if f.others == nil {
		f.others = map[string]*machine{}
	}
	f.others[name] = m
	return m, &c
}

// notes are a lane's notes, one a line.
func notes(m *results.Model, lane string) string {
	var b strings.Builder
	for _, r := range m.Notes {
		if r.Lane == lane {
			fmt.Fprintln(&b, r.Note)
		}
	}
	return b.String()
}

func laneOf(t *testing.T, m *results.Model, name string) *results.LaneState {
	t.Helper()
	i := slices.IndexFunc(m.Lanes, func(l *results.LaneState) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no lane %s", name)
	}
	return m.Lanes[i]
}

func panics(k string) error {
	return &targets.BootError{Kernel: k, Stage: targets.StagePanic, Err: errors.New("Kernel panic - not syncing: x")}
}

// A target that nothing brings back is given up with its first cause; the other
// lane goes on.
func TestTargetThatNeverComesBack(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.addMachine(t, "other")
	box := f.lab.Targets[0]
	strip := newPDU(nil)
	strip.dead = errors.New("the strip does not answer")
	box.Power, box.KnownGood = &plug{pdu: strip, outlet: "1"}, "a"
	box.Timeout.Boot, box.Timeout.Exec = 2*time.Second, time.Second
	f.m.traits = targets.BootTraits{Returns: true, Running: true}
	f.m.fail = func(int, string) error {
		f.m.off = true // for good
		return panics("b")
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	l := laneOf(t, m, "box")
	if !l.Quarantined || !strings.HasPrefix(l.Reason, "after boot 1 (kernel ") || !strings.Contains(l.Reason, "the strip does not answer") {
		t.Errorf("lane box: %+v", l)
	}
	if laneOf(t, m, "other").Quarantined {
		t.Error("the other lane is given up too")
	}
	n := count(m)
	if n[results.OK] != 4 || n[results.BootFailed] != 1 || n[results.Skipped] != 3 {
		t.Errorf("outcomes %v, want 4 ok of the other, 1 boot-failed and 3 skipped", n)
	}
}

// After every failure the target is restarted, and in the end it is on its
// known-good kernel.
func TestLaneComesHome(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Targets[0].KnownGood = "a"
	restarts := 0
	f.m.traits = targets.BootTraits{Returns: true, Running: true}
	f.m.reboot = func() {
		restarts++
		f.m.supply(false)
		f.m.supply(true)
	}
	f.m.fail = func(_ int, k string) error {
		if k == "b" {
			f.m.renew("fallen back") // GRUB's default after the panic
			return panics(k)
		}
		return nil
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 2 || n[results.BootFailed] != 2 {
		t.Errorf("outcomes %v", n)
	}
	if got := notes(m, "box"); strings.Count(got, "back on the known-good kernel a by ssh, after") != restarts || restarts < 2 {
		t.Errorf("%d restarts:\n%s", restarts, got)
	}
	if l := laneOf(t, m, "box"); l.Ended.IsZero() || l.Quarantined {
		t.Errorf("lane %+v", l)
	}
}

// The known-good kernel is not what it was: the lane goes on, and it is said.
func TestRecoveryKernelIsWrong(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Kernels = append(f.lab.Kernels, &config.Kernel{Name: "good", Release: "1.2.3-flash"})
	f.lab.Targets[0].KnownGood = "good"
	f.m.traits = targets.BootTraits{Returns: true, Running: true}
	f.m.reboot = func() { f.m.supply(false); f.m.supply(true) }
	f.m.fail = func(_ int, k string) error {
		if k == "b" {
			return panics(k)
		}
		return nil
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := notes(m, "box")
	for _, want := range []string{"did not come back to its known-good kernel good: ssh: kernel good: wrong kernel", "NOT left on the known-good kernel good"} {
		if !strings.Contains(got, want) {
			t.Errorf("no note %q:\n%s", want, got)
		}
	}
	if n := count(m); n[results.OK] != 2 || n[results.BootFailed] != 2 {
		t.Errorf("outcomes %v: the kernels that can be booted are measured all the same", n)
	}
}

// Ctrl-C in the middle of a recovery: the lane still ends on the known-good kernel.
func TestInterruptedRecoveryEndsAtHome(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.lab.Targets[0].KnownGood = "a"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := true
	f.m.traits = targets.BootTraits{Returns: true, Running: true}
	f.m.reboot = func() {
		if first { // it goes down, and Ctrl-C comes before it is up
			first = false
			f.m.supply(false)
			cancel()
			f.m.supply(true)
			return
		}
		f.m.supply(false)
		f.m.supply(true)
	}
	f.m.fail = func(int, string) error { return panics("x") }
	_, m, err := f.execute(t, ctx, nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if got := notes(m, "box"); strings.Count(got, "back on the known-good kernel a by ssh") != 1 {
		t.Errorf("notes:\n%s", got)
	}
	if s := m.ExitStatus(); s != 130 {
		t.Errorf("exit status %d", s)
	}
}

// A target that is off when the night begins is switched on.
func TestTargetThatIsOffAtTheStart(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.traits, f.m.off = targets.BootTraits{Running: true}, true
	f.lab.Targets[0].Power = &plug{pdu: newPDU(map[string]*machine{"1": f.m}), outlet: "1"}
	pre := &Preflight{Lab: f.lab, Plan: planOf(t, f), Dial: f.dial}
	if got := pre.Run(t.Context()); len(got) != 1 || got[0].Level != Warning || !strings.Contains(got[0].Text, "its power driver will be tried") {
		t.Errorf("%+v", got)
	}
	_, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 || !strings.Contains(notes(m, "box"), "it did not answer at the start: switched on") {
		t.Errorf("outcomes %v\n%s", n, notes(m, "box"))
	}
}

// Without a power driver a target that is only on its way up is waited for, and
// is not given up.
func TestTargetThatComesUpByItself(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	f.m.traits, f.m.off = targets.BootTraits{Running: true}, true
	f.lab.Targets[0].SSH.Host = "box"
	_, m, err := f.execute(t, t.Context(), func(r results.Record) {
		if strings.Contains(r.Note, "for it to come up by itself") {
			f.m.supply(true)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 4 || strings.Contains(notes(m, "box"), "infrastructure failure") {
		t.Errorf("outcomes %v\n%s", n, notes(m, "box"))
	}
}

// What ramoops kept of a panic lies beside the boot that panicked, and the store
// is empty again.
func TestCrashIsCollectedOnTheNextGoodBoot(t *testing.T) {
	t.Parallel()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &echo{}})
	store := filepath.Join(f.m.dir, "pstore")
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(store, "dmesg-ramoops-0"), []byte(text), 0o644); err != nil {
			t.Error(err)
		}
	}
	write("of last week")
	f.lab.Targets[0].KnownGood = "a"
	f.m.fail = func(n int, k string) error {
		if k == "b" {
			write("panic of b")
			return panics(k)
		}
		return nil
	}
	run, m, err := f.execute(t, t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(store); err != nil || len(left) != 0 {
		t.Errorf("left in the store: %v, %v", left, err)
	}
	failed := 0
	for _, b := range m.Boots {
		if b.Result.Outcome != results.BootFailed {
			continue
		}
		failed++
		got, err := os.ReadFile(filepath.Join(run.BootDir("box", b.Number), "pstore", "pstore-dmesg-ramoops-0"))
		if err != nil || string(got) != "panic of b" {
			t.Errorf("boot %d: %q, %v", b.Number, got, err)
		}
		if want := fmt.Sprintf("kernel logs of the crash in boot %d (kernel b), from pstore or kdump: pstore-dmesg-ramoops-0 in ", b.Number); !strings.Contains(notes(m, "box"), want) {
			t.Errorf("no note %q:\n%s", want, notes(m, "box"))
		}
	}
	if failed != 2 {
		t.Errorf("%d boots failed", failed)
	}
}
