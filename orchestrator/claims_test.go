package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/leases"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// claimer is how another process would claim in the same folder of leases.
func claimer(folder, owner string) ClaimOptions {
	return ClaimOptions{Folder: folder, Holder: leases.Holder{Owner: owner, Command: "run s"}}
}

// claims of a process with no targets, for what trials share.
func claims(t *testing.T, folder string) *Claims {
	t.Helper()
	c, err := ClaimTargets(t.Context(), claimer(folder, "me"), &config.Lab{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Release(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Two runs on one machine would measure each other: the second is refused, by
// name of the first, before it has written anything.
func TestTwoRunsNeverShareATarget(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	f := newFakeLab(t, map[string]workloads.Workload{"default": &withPeer{}})
	f.lab.Workloads[0].Scenarios[0].Common.Peer = "other"
	f.lab.Targets = append(f.lab.Targets,
		&config.Target{Target: targets.Target{Name: "other", Boot: newMachine(t)}, BootKind: "fake"},
		&config.Target{Target: targets.Target{Name: "third", Boot: newMachine(t)}, BootKind: "fake"})
	p, err := plan.Expand(f.lab, f.lab.Sweeps[0], 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := Claim(t.Context(), claimer(folder, "alice"), f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"box", "other"} {
		_, err = ClaimTargets(t.Context(), claimer(folder, "bob"), f.lab, name)
		var held *leases.HeldError
		if !errors.As(err, &held) || !strings.HasPrefix(err.Error(), "target "+name+" is held by alice (process ") ||
			!strings.Contains(err.Error(), "kernsweep run s) since ") || !strings.Contains(err.Error(), " until ") || !strings.Contains(err.Error(), "--wait") {
			t.Errorf("%s: %v", name, err)
		}
	}
	free, err := ClaimTargets(t.Context(), claimer(folder, "bob"), f.lab, "third")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(free.Release(), first.Release(), first.Release()); err != nil {
		t.Error(err)
	}
	again, err := Claim(t.Context(), claimer(folder, "bob"), f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// A device is leased under every name that two configurations may have for it,
// and 192.168.1.1 behind two jump hosts is two devices.
func TestKeysOfATarget(t *testing.T) {
	controller, _ := os.Hostname()
	resolve := func(_ context.Context, s targets.SSH) ([]string, error) {
		if s.Host == "alias" {
			return []string{"127.0.0.1:2201"}, nil
		}
		return nil, errors.New("no configuration")
	}
	for _, c := range []struct {
		ssh  targets.SSH
		want []string // all of these
	}{
		{targets.SSH{Host: "LocalHost", Port: 2201}, []string{"target:localhost:2201", "target:127.0.0.1:2201"}},
		{targets.SSH{Host: "alias"}, []string{"target:127.0.0.1:2201"}},
		{targets.SSH{Host: "::ffff:10.0.0.1"}, []string{"target:10.0.0.1:22"}},
		{targets.SSH{Host: "FD00::0001", Port: 23}, []string{"target:[fd00::1]:23"}},
		{targets.SSH{Host: "192.168.1.1", Via: []string{"u@localhost:24"}}, []string{"target:localhost:24 > 192.168.1.1:22", "target:127.0.0.1:24 > 192.168.1.1:22"}},
		{targets.SSH{Host: "192.168.1.1", Via: []string{"10.0.0.2"}}, []string{"target:10.0.0.2:22 > 192.168.1.1:22"}},
		{targets.SSH{}, []string{"target:named box at " + controller}},
	} {
		tg := &config.Target{Target: targets.Target{Name: "box", SSH: c.ssh}}
		got := addresses{resolve, func(string) {}}.keys(t.Context(), tg)
		for _, w := range c.want {
			if !slices.Contains(got, w) {
				t.Errorf("%+v: %q lacks %q", c.ssh, got, w)
			}
		}
		if len(c.want) == 1 && len(got) != 1 {
			t.Errorf("%+v: %q", c.ssh, got)
		}
	}
}

// Two configurations that name one device differently exclude each other; two
// targets of one plan that are one device are refused.
func TestOneDeviceByTwoNames(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	lab := &config.Lab{Targets: []*config.Target{
		{Target: targets.Target{Name: "router", SSH: targets.SSH{Host: "localhost", Port: 2201}}},
		{Target: targets.Target{Name: "wrt", SSH: targets.SSH{Host: "127.0.0.1", Port: 2201}}},
		{Target: targets.Target{Name: "next", SSH: targets.SSH{Host: "127.0.0.1", Port: 2202}}},
	}}
	first, err := ClaimTargets(t.Context(), claimer(folder, "alice"), lab, "router")
	if err != nil {
		t.Fatal(err)
	}
	var held *leases.HeldError
	if _, err := ClaimTargets(t.Context(), claimer(folder, "bob"), lab, "wrt"); !errors.As(err, &held) || !strings.HasPrefix(err.Error(), "target wrt is held by alice") {
		t.Errorf("by its other name: %v", err)
	}
	next, err := ClaimTargets(t.Context(), claimer(folder, "bob"), lab, "next")
	if err != nil {
		t.Fatalf("another port is another device: %v", err)
	}
	if err := errors.Join(first.Release(), next.Release()); err != nil {
		t.Fatal(err)
	}
	if _, err := ClaimTargets(t.Context(), claimer(folder, "bob"), lab, "wrt", "router"); err == nil || !strings.Contains(err.Error(), "targets router and wrt are the same machine: both lead to 127.0.0.1:2201") {
		t.Errorf("twice in one plan: %v", err)
	}
}

// What a trial shares with the trials of another run is waited for.
func TestPeerIsSharedAmongProcesses(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	one, two := newLocks(claims(t, folder)), newLocks(claims(t, folder)) // as of two processes
	release, err := one.acquire(t.Context(), "peer:controller", "target:a")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := two.acquire(short, "peer:controller", "target:b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taken twice: %v", err)
	}
	if err := one.broken(t.Context(), "peer:controller", "target:a"); err != nil {
		t.Error(err)
	}
	go release()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	again, err := two.acquire(ctx, "peer:controller", "target:b")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// A target that was taken over while this process was stopped was not alone.
func TestATargetThatWasTakenOverWasNotAlone(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "l")
	a := &config.Target{Target: targets.Target{Name: "a", Boot: &machine{}}}
	c, err := ClaimTargets(t.Context(), claimer(folder, "alice"), &config.Lab{Targets: []*config.Target{a}}, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	l := newLocks(c)
	if err := l.broken(t.Context(), "target:a"); err != nil {
		t.Errorf("nobody took it: %v", err)
	}
	steal(t, folder, "a")
	var lost *leases.LostError
	if err := l.broken(t.Context(), "target:a"); !errors.As(err, &lost) {
		t.Errorf("it was taken over, and the trial counts: %v", err)
	}
}

// A folder of leases that cannot be one is said before anything starts.
func TestNoClaimWithoutAFolder(t *testing.T) {
	f := newFakeLab(t, nil)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ClaimTargets(t.Context(), claimer(file, "me"), f.lab, "box"); err == nil || !strings.Contains(err.Error(), leases.EnvFolder) {
		t.Errorf("a file was taken for the folder of the leases: %v", err)
	}
	// Virtual targets are nobody's: they need none.
	f.m.traits.Local = true
	o, said := claimer(file, "me"), ""
	o.Say = func(s string) { said += s }
	c, err := ClaimTargets(t.Context(), o, f.lab, "box")
	if err != nil || !strings.Contains(said, "not leased") || c.Release() != nil {
		t.Errorf("%v, %q", err, said)
	}
}

func TestLocksAreTakenInOneOrder(t *testing.T) {
	l := newLocks(claims(t, filepath.Join(t.TempDir(), "l")))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	done := make(chan error, 2)
	for _, names := range [][]string{{"uses:a", "uses:b"}, {"uses:b", "uses:a"}} {
		go func() {
			for range 100 {
				release, err := l.acquire(ctx, names...)
				if err != nil {
					done <- err
					return
				}
				release()
			}
			done <- nil
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
