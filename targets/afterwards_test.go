package targets

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// How long Afterwards lasts, by when it begins and what ends it.
func TestAfterwardsSharesTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget, end, begin, d time.Duration // 0: no budget; ctx never ends
		unlimited             bool
		want                  time.Duration // after the begin
	}{
		"no budget":                     {d: time.Minute, want: time.Minute},
		"budget, ctx lives":             {budget: 20 * time.Second, d: time.Minute, want: time.Minute},
		"all of the budget":             {budget: 20 * time.Second, end: time.Second, begin: time.Second, d: time.Minute, want: 20 * time.Second},
		"what is left of it":            {budget: 20 * time.Second, end: time.Second, begin: 16 * time.Second, d: time.Minute, want: 5 * time.Second},
		"nothing is left":               {budget: 20 * time.Second, end: time.Second, begin: time.Hour, d: time.Minute, want: 0},
		"begun before the interruption": {budget: 20 * time.Second, end: 10 * time.Second, d: time.Minute, want: 30 * time.Second},
		"its own limit is shorter":      {budget: 20 * time.Second, end: time.Second, begin: time.Second, d: 3 * time.Second, want: 3 * time.Second},
		"without budget":                {budget: 20 * time.Second, end: time.Second, begin: time.Hour, d: time.Minute, unlimited: true, want: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.budget > 0 {
					var stop func()
					ctx, stop = WithBudget(ctx, c.budget)
					defer stop()
				}
				if c.end > 0 {
					time.AfterFunc(c.end, cancel)
				}
				<-time.After(c.begin)
				synctest.Wait()
				if c.unlimited {
					ctx = WithoutBudget(ctx)
				}
				begin := time.Now()
				after, stop := Afterwards(ctx, c.d)
				defer stop()
				<-after.Done()
				if got := time.Since(begin); got != c.want {
					t.Errorf("it lasted %s, want %s (%v)", got, c.want, context.Cause(after))
				}
			})
		})
	}
}

// What must not be cut off outlives the budget, and can be waited for.
func TestLastingOutlivesTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ctx, stop := WithBudget(ctx, 20*time.Second)
		defer stop()
		if Unfinished(ctx) != nil {
			t.Error("something is unfinished before it began")
		}
		write, done := Lasting(ctx, time.Minute)
		cancel()
		<-time.After(30 * time.Second)
		if write.Err() != nil {
			t.Errorf("it was cut off: %v", context.Cause(write))
		}
		time.AfterFunc(10*time.Second, done)
		<-Unfinished(ctx)
		if Unfinished(ctx) != nil || write.Err() == nil {
			t.Error("it does not end")
		}
		over, end := Lasting(ctx, time.Minute)
		defer end()
		<-over.Done()
	})
}
