package targets

import (
	"context"
	"fmt"
	"sync"
	"time"
)

type budgetKey struct{}

// budget is the time that all clean-ups after one context share.
type budget struct {
	over context.Context // done when it is used up

	mu      *sync.Mutex
	lasting map[chan struct{}]bool // what must not be cut off; closed when it has ended
}

// WithBudget lets everything that Afterwards begins for ctx, or for a context
// made from it, share d from the moment ctx ends: however many links are dead,
// whoever pressed Ctrl-C waits no longer. stop is called once nothing is cleaned
// up any more.
func WithBudget(ctx context.Context, d time.Duration) (budgeted context.Context, stop func()) {
	over, end := context.WithCancelCause(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			end(fmt.Errorf("given up %s after the interruption", d))
		case <-over.Done():
		}
	})
	return context.WithValue(ctx, budgetKey{}, budget{over, &sync.Mutex{}, map[chan struct{}]bool{}}), func() { unhook(); end(context.Canceled) }
}

// Afterwards is the context for putting in order what ctx leaves behind, whether
// ctx has ended or not: at most d long, and no longer than what is left of the
// budget of ctx, where it has one.
func Afterwards(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), d, fmt.Errorf("not done within %s", d))
	b, ok := ctx.Value(budgetKey{}).(budget)
	if !ok {
		return after, cancel
	}
	after, end := context.WithCancelCause(after)
	unhook := context.AfterFunc(b.over, func() { end(context.Cause(b.over)) })
	return after, func() { unhook(); end(nil); cancel() }
}

// Lasting is ctx for what must not be cut off in its middle, such as a write of
// flash: it outlives ctx, and its budget, for at most d.
func Lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), d, fmt.Errorf("not done within %s", d))
	b, ok := ctx.Value(budgetKey{}).(budget)
	if !ok {
		return after, cancel
	}
	done := make(chan struct{})
	b.mu.Lock()
	b.lasting[done] = true
	b.mu.Unlock()
	return after, sync.OnceFunc(func() {
		cancel()
		close(done)
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.lasting, done)
	})
}

// Unfinished is closed when something has ended that Lasting began for ctx, or
// for a context made from the same budget; nil: there is nothing.
func Unfinished(ctx context.Context) <-chan struct{} {
	b, ok := ctx.Value(budgetKey{}).(budget)
	if !ok {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for done := range b.lasting {
		return done
	}
	return nil
}

// WithoutBudget is ctx for what may take its own time even after an
// interruption: bringing a machine back to its known-good kernel.
func WithoutBudget(ctx context.Context) context.Context {
	return context.WithValue(ctx, budgetKey{}, nil)
}
