package orchestrator

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// When an interrupted run stops waiting for its lanes, and for which.
func TestAwaitLanes(t *testing.T) {
	for name, c := range map[string]struct {
		lane  func(ctx context.Context, e *ending) // runs as the lane t1 does; the interruption comes after 10 s
		after time.Duration                        // from the interruption
		stuck bool
	}{
		"ends by itself":   {lane: func(context.Context, *ending) { <-time.After(time.Second) }, after: -9 * time.Second},
		"heeds it":         {lane: func(ctx context.Context, _ *ending) { <-ctx.Done(); <-time.After(2 * time.Second) }, after: 2 * time.Second},
		"heeds nothing":    {lane: func(context.Context, *ending) { <-time.After(time.Hour) }, after: leaveBudget + leaveGrace, stuck: true},
		"uses the budget":  {lane: func(ctx context.Context, _ *ending) { budgeted(ctx, time.Hour) }, after: leaveBudget},
		"goes home":        {lane: func(ctx context.Context, e *ending) { <-ctx.Done(); homeFor(e, 5*time.Minute) }, after: 5 * time.Minute},
		"hangs after home": {lane: func(ctx context.Context, e *ending) { <-ctx.Done(); homeFor(e, time.Minute); <-time.After(time.Hour) }, after: time.Minute + cleanupTime + leaveGrace, stuck: true},
		"writes flash": {lane: func(ctx context.Context, _ *ending) {
			write, done := targets.Lasting(ctx, 10*time.Minute)
			defer done()
			select {
			case <-time.After(3 * time.Minute):
			case <-write.Done():
			}
		}, after: 3*time.Minute - 10*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeLab(t, nil)
				run, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
				if err != nil {
					t.Fatal(err)
				}
				w, err := run.OpenWriter("test")
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				l := &lane{conf: &config.Target{Target: targets.Target{Name: "t1"}}, ending: ending{over: make(chan struct{})}}
				r := &Runner{Lab: f.lab, Run: run, Journal: w, lanes: []*lane{l}}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ctx, stop := targets.WithBudget(ctx, leaveBudget)
				defer stop()
				begin := time.Now()
				time.AfterFunc(10*time.Second, cancel)
				go func() {
					defer close(l.ending.over)
					c.lane(ctx, &l.ending)
				}()
				stuck := r.await(ctx)
				if took := time.Since(begin) - 10*time.Second; took != c.after {
					t.Errorf("it waits until %s after the interruption, want %s", took, c.after)
				}
				if slices.Contains(stuck, "t1") != c.stuck {
					t.Errorf("stuck: %v", stuck)
				}
				r.leftBehind(ctx, stuck)
				if r.fenced(results.Record{Lane: "t1"}) != c.stuck {
					t.Error("a lane that was left behind may not write to the journal any more, others may")
				}
				<-l.ending.over
			})
		})
	}
}

func budgeted(ctx context.Context, d time.Duration) {
	<-ctx.Done()
	after, stop := targets.Afterwards(ctx, d)
	defer stop()
	<-after.Done()
}

func homeFor(e *ending, d time.Duration) {
	defer e.returning()()
	<-time.After(d)
}
