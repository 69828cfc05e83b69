package doctor

import (
	"context"
	"errors"
	"testing"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
	"kernsweep/targets/boot"
)

// An interrupted step says nothing about the target, and no advice is given.
func TestAnInterruptionIsNoFault(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	stopped := errors.New("interrupt signal received")
	steps, err := Walk(ctx, Options{
		Target: &config.Target{Target: targets.Target{Name: "box", Boot: new(boot.None)}},
		Dial: func(ctx context.Context, _ targets.SSH, _ targets.DialOptions) (targets.Conn, error) {
			interrupt(stopped)
			return nil, context.Cause(ctx)
		},
		Note: func(string) {},
	})
	if !errors.Is(err, stopped) || len(steps) != 2 {
		t.Fatalf("%v, %+v", err, steps)
	}
	if s := steps[1]; s.State != NA || s.Text != "interrupted" || s.Advice != "" {
		t.Errorf("%+v", s)
	}
}
