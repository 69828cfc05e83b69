// Package doctor rehearses a target: it walks through everything that an
// unattended night will need of it, the gentlest first, and times each step.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.uber.org/zap"

	"kernsweep/orchestrator/config"
	"kernsweep/targets"
)

// State of a step.
type State string

// The states of a step.
const (
	OK     State = "ok"
	Failed State = "failed"
	NA     State = "n/a" // not tried, with the reason
)

// Step is one thing that was tried.
type Step struct {
	Name   string        `json:"name"`
	State  State         `json:"state"`
	Took   time.Duration `json:"took_ns"`
	Text   string        `json:"text"`             // what was seen, or why it is n/a
	Advice string        `json:"advice,omitempty"` // what to do, of a step that failed
}

// Options of a rehearsal.
type Options struct {
	Target *config.Target
	Known  *targets.Kernel // to come back to; nil: none is known
	Kernel *targets.Kernel // to boot by the boot method; nil: Known
	Panic  bool            // the kernel may be crashed
	Hang   bool            // its processes may be stopped for ever
	Dial   targets.DialFunc
	Serve  targets.ServeFunc
	Agent  func(goarch string) ([]byte, error)
	Log    *zap.Logger
	// Kernsweep begins the commands that steps propose; "" = kernsweep.
	Kernsweep string
	// Console receives the console's bytes; Note facts on the way; Step each
	// step as it ends.
	Console io.Writer
	Note    func(string)
	Step    func(Step)
}

// rehearsal is one walk.
type rehearsal struct {
	o     Options
	t     *targets.Target
	steps []Step
	down  string // why nothing more can be tried; "" = it can
	known string // boot_id of the newest boot
	away  bool   // we took it down, and it is not back
}

// Walk tries everything and returns the steps in their order. Its error is the
// context's; a step that fails is no error. The target is left on its known-good
// kernel where there is one and a way to it.
func Walk(ctx context.Context, o Options) ([]Step, error) {
	t := o.Target.Target
	t.Dial, t.Serve, t.Agent = o.Dial, o.Serve, o.Agent
	r := &rehearsal{o: o, t: &t}
	defer r.end()
	defer r.bringBack(ctx)
	for _, s := range r.all() {
		if ctx.Err() != nil {
			return r.steps, context.Cause(ctx)
		}
		r.try(ctx, s.name, s.run)
	}
	return r.steps, context.Cause(ctx)
}

// step is one to be tried.
type step struct {
	name string
	run  func(context.Context) (string, error)
}

// all are the steps, the gentlest first.
func (r *rehearsal) all() []step {
	return []step{{stepPrograms, r.programs}, {stepReach, r.reach}, {stepConsole, r.console}, {stepTransfer, r.transfer}, {stepAgent, r.agent},
		{stepBoot, r.boot}, {stepPower, r.power}, {stepPanic, r.panics}, {stepHang, r.hangs}}
}

// notTried is the reason why a step is n/a.
type notTried string

func (n notTried) Error() string { return string(n) }

func (r *rehearsal) try(ctx context.Context, name string, run func(context.Context) (string, error)) {
	s := Step{Name: name, State: OK}
	begin := time.Now()
	if r.down != "" {
		s.State, s.Text = NA, r.down
	} else {
		text, err := run(ctx)
		s.Text, s.Took = text, time.Since(begin)
		var not notTried
		switch {
		case errors.As(err, &not):
			s.State, s.Text, s.Took = NA, string(not), 0
		case err != nil && ctx.Err() != nil: // the person's doing, not the target's
			s.State, s.Text, s.Took = NA, "interrupted", 0
		case err != nil:
			s.State, s.Text, s.Advice = Failed, err.Error(), r.advice(name, err)
		}
	}
	r.steps = append(r.steps, s)
	if r.o.Step != nil {
		r.o.Step(s)
	}
}

// local says that the target is a process of ours, which is reached by booting it.
func (r *rehearsal) local() bool { return targets.TraitsOf(r.t.Boot).Local }

// bringBack undoes what an interrupted step did: nobody wants the target left
// crashed or without power.
func (r *rehearsal) bringBack(ctx context.Context) {
	if !r.away || ctx.Err() == nil || r.local() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*r.t.Timeout.WithDefaults().Boot)
	defer stop()
	r.note("interrupted while %s was down: bringing it back", r.t.Name)
	r.drop()
	how, err := r.comeBack(ctx)
	if err != nil {
		r.note("it is NOT back: %v", err)
		return
	}
	r.note("it is back, by %s", how)
}

// end lets go of everything.
func (r *rehearsal) end() {
	if r.t.Held != nil {
		_ = r.t.Held.Close() // nothing more is asked of it
	}
	r.t.StopConsole()
	for _, d := range []any{r.t.Boot, r.t.Power, r.t.Console} {
		if c, ok := d.(targets.Closer); ok {
			if err := c.Close(); err != nil {
				r.o.Log.Warn("driver did not close", zap.Error(err))
			}
		}
	}
}

func (r *rehearsal) note(format string, args ...any) {
	if r.o.Note != nil {
		r.o.Note(fmt.Sprintf(format, args...))
	}
}

// start boots k by the target's boot method and proves it.
func (r *rehearsal) start(ctx context.Context, k *targets.Kernel) (targets.BootRecord, error) {
	conn, rec, err := targets.Boot(ctx, r.t, *k, r.log())
	if err != nil {
		return rec, err
	}
	r.t.Held, r.known = conn, rec.BootID
	r.away = false
	return rec, nil
}

func (r *rehearsal) log() targets.BootLog {
	return targets.BootLog{Note: r.o.Note, Console: r.o.Console, Known: r.known}
}
