package orchestrator

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Two runs on one machine would measure each other: the second is refused, by
// name of the first, before it has written anything.
func TestTwoRunsNeverShareATarget(t *testing.T) {
	runs := t.TempDir()
	f := newFakeLab(t, map[string]workloads.Workload{"default": &withPeer{}})
	f.lab.Workloads[0].Scenarios[0].Common.Peer = "other"
	f.lab.Targets = append(f.lab.Targets,
		&config.Target{Target: targets.Target{Name: "other", Boot: newMachine(t)}, BootKind: "fake"},
		&config.Target{Target: targets.Target{Name: "third", Boot: newMachine(t)}, BootKind: "fake"})
	p, err := plan.Expand(f.lab, f.lab.Sweeps[0], 1, plan.Filter{}, plan.History{})
	if err != nil {
		t.Fatal(err)
	}
	release, err := Claim(runs, "of alice, process 1", f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"box", "other"} {
		_, err = ClaimTargets(runs, "of bob", f.lab, name)
		var held *ClaimedError
		if !errors.As(err, &held) || held.Target != name || !strings.Contains(err.Error(), "in use by another kernsweep of alice, process 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	free, err := ClaimTargets(runs, "of bob", f.lab, "third")
	if err != nil {
		t.Error(err)
	} else {
		free()
	}
	release()
	again, err := Claim(runs, "of bob", f.lab, p)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// What a trial shares with the trials of another run is waited for.
func TestPeerIsSharedAmongProcesses(t *testing.T) {
	runs := t.TempDir()
	one, two := newLocks(runs), newLocks(runs) // as of two processes
	release, err := one.acquire(t.Context(), "peer:controller", "target:a")
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := two.acquire(short, "peer:controller", "target:b"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("taken twice: %v", err)
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

// A folder of runs that cannot be one is said before anything starts.
func TestNoClaimWithoutAFolder(t *testing.T) {
	f := newFakeLab(t, nil)
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ClaimTargets(file, "me", f.lab, "box"); err == nil {
		t.Error("a file was taken for the folder of the runs")
	}
}

func TestLocksAreTakenInOneOrder(t *testing.T) {
	l := newLocks(t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 2)
	for _, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			for range 200 {
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
