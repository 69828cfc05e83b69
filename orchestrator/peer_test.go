package orchestrator

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// withPeer is an echo that needs a peer.
type withPeer struct{ echo }

func (*withPeer) Needs() workloads.Needs { return workloads.Needs{Peer: true} }

func TestTwoLanesNeverShareAPeer(t *testing.T) {
	var inside, most atomic.Int32
	work := &withPeer{}
	work.run = func(ctx context.Context, env *workloads.Env) error {
		n := inside.Add(1)
		defer inside.Add(-1)
		for {
			old := most.Load()
			if n <= old || most.CompareAndSwap(old, n) {
				break
			}
		}
		return env.Peer.Agent.Run(ctx, workloads.Task{Argv: []string{"exec", "--", "sleep", "0.1"}, Deadline: env.Deadline, Dir: env.Dir, Prefix: "peer-"})
	}
	f := newFakeLab(t, map[string]workloads.Workload{"default": work})
	second := newMachine(t)
	f.lab.Targets = append(f.lab.Targets, &config.Target{Target: targets.Target{Name: "box2", Arch: runtime.GOARCH, Boot: second,
		SSH: targets.SSH{Host: "box2"}, Timeout: targets.Timeouts{Boot: 10 * time.Second}}, BootKind: "fake", Agent: "auto", Scale: 1, Quarantine: 2})
	f.others = map[string]*machine{"box2": second}
	f.lab.Sweeps[0].Matrices[0].Targets = []string{"box", "box2"}
	// The first lane's first record stays in Observe until another record comes in
	// beside it, which must not happen, or a while has passed.
	var watching atomic.Int32
	var first sync.Once
	beside := make(chan struct{}, 100)
	_, m, err := f.execute(t, t.Context(), func(r results.Record) {
		if watching.Add(1) > 1 {
			t.Error("two records were shown at once")
			beside <- struct{}{}
		}
		defer watching.Add(-1)
		if r.Kind == results.KindLane {
			first.Do(func() {
				select {
				case <-beside:
				case <-time.After(200 * time.Millisecond):
				}
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := count(m); n[results.OK] != 8 {
		t.Fatalf("outcomes %v, want 8 ok", n)
	}
	if most.Load() != 1 {
		t.Errorf("%d trials used the controller as their peer at once", most.Load())
	}
}
