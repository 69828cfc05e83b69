package targets

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// StrandedError says that no means brought a target back. It is infrastructure.
type StrandedError struct {
	Target string
	Wanted string // what was wanted: "its known-good kernel cfs"
	Err    error  // every means and its failure
}

func (e *StrandedError) Error() string {
	return fmt.Sprintf("target %s did not come back to %s: %v", e.Target, e.Wanted, e.Err)
}

func (e *StrandedError) Unwrap() error { return e.Err }

// restarted is a boot method that only restarts the machine: what comes up is
// the device's own default, and it is judged without a nonce.
type restarted struct {
	own  BootTraits    // of the method it stands for
	most time.Duration // that f may take, beside Timeouts.Boot
	f    func(ctx context.Context, t *Target) error
	err  error // of f
}

func (r *restarted) Boot(ctx context.Context, t *Target, _ Kernel) error {
	if tap, err := t.Tap(); err == nil { // the old kernel's last words judge nobody
		defer tap.Close()
	}
	r.err = r.f(ctx, t)
	return r.err
}

func (r *restarted) Traits() BootTraits {
	return BootTraits{Local: r.own.Local, Emulated: r.own.Emulated, HostBound: r.own.HostBound}
}

// returning is one call of Return.
type returning struct {
	t      *Target
	k      Kernel
	log    BootLog
	begin  time.Time
	conn   Conn
	rec    BootRecord
	gone   error // why the running system did not let us in
	failed []error
}

// Return brings t back to its known-good kernel k and proves it: by release and
// scheduler, in a new boot. Where the boot method says that any other start
// brings the device's own default (BootTraits.Returns), the machine is restarted,
// by the next stronger means when one leads to nothing within Timeouts.Boot, and
// only when another kernel comes up is k started by the method itself. For every
// other method k is started by the method; a target that does not answer is
// restarted before.
//
// A k without a name stands for whatever answers over SSH: then a target that
// answers is back already. how says by what means it came back and how long that
// took, "" when nothing had to be done. The error is ctx's cause, an *OutletError, a *StrandedError.
func Return(ctx context.Context, t *Target, k Kernel, log BootLog) (conn Conn, rec BootRecord, how string, err error) {
	r := &returning{t: t, k: k, log: log, begin: time.Now()}
	how, err = r.run(ctx)
	if err == nil && how == "" {
		return r.conn, r.rec, "", nil
	}
	if err == nil {
		how += fmt.Sprintf(", after %s", time.Since(r.begin).Round(time.Second))
		if len(r.failed) > 0 {
			how += inBrackets(r.failed)
		}
		return r.conn, r.rec, how, nil
	}
	var wrong *OutletError
	switch {
	case ctx.Err() != nil:
		return nil, r.rec, "", context.Cause(ctx)
	case errors.As(err, &wrong):
		return nil, r.rec, "", err
	}
	return nil, r.rec, "", &StrandedError{t.Name, k.orDefault(), err}
}

func (k Kernel) orDefault() string {
	if k.Name == "" {
		return "a system that answers over SSH"
	}
	return "its known-good kernel " + k.Name
}

func (r *returning) run(ctx context.Context) (how string, err error) {
	tr := TraitsOf(r.t.Boot)
	answers := r.answers(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	switch {
	case answers && r.k.Name == "":
		return "", r.asItIs(ctx)
	case answers && tr.OnlyOnce:
		return "", r.method(ctx) // which starts nothing, and judges
	}
	byMethod := r.k.Name != "" && !tr.OnlyOnce
	if byMethod && !tr.Returns && (answers || !tr.Running) {
		if err := r.method(ctx); err == nil {
			return "boot method", nil
		} else if ctx.Err() != nil || isOutlet(err) {
			return "", err
		}
	}
	how, err = r.ladder(ctx, answers)
	var be *BootError
	if errors.As(err, &be) && isWrong(be) && byMethod {
		if err := r.method(ctx); err != nil {
			return "", joined(r.failed)
		}
		return "boot method", nil
	}
	return how, err
}

// isWrong says that a machine came up, with something else.
func isWrong(e *BootError) bool {
	return e.Stage == StageWrongKernel || e.Stage == StageWrongScheduler
}

func isOutlet(err error) bool {
	var wrong *OutletError
	return errors.As(err, &wrong)
}

// answers says whether the running system lets us in; Held is then the link.
func (r *returning) answers(ctx context.Context) bool {
	conn, _, err := r.t.running(ctx)
	if r.gone = err; err != nil {
		if r.t.Held != nil {
			_ = r.t.Held.Close() // it is dead
			r.t.Held = nil
		}
		return false
	}
	if r.t.Held != nil && conn != r.t.Held {
		_ = r.t.Held.Close()
	}
	r.t.Held = conn
	return true
}

// ladder restarts the target by one means after another, until what comes up is
// the wanted kernel. A machine that comes up with another one ends it, with that
// *BootError, for a stronger restart brings the same.
func (r *returning) ladder(ctx context.Context, answers bool) (string, error) {
	for _, m := range []Means{BySSH, BySysRq, ByPower} {
		if why := r.lacks(m, answers); why != "" {
			r.fail(fmt.Errorf("%s: %s", m, why))
			continue
		}
		err := r.start(ctx, &restarted{own: TraitsOf(r.t.Boot), most: r.t.restartTime(m), f: func(ctx context.Context, t *Target) error { return RestartBy(ctx, t, m) }}, string(m))
		if err == nil {
			return string(m), nil
		}
		var be *BootError
		if ctx.Err() != nil || isOutlet(err) || errors.As(err, &be) && isWrong(be) {
			return "", err
		}
	}
	return "", joined(r.failed)
}

// lacks says why a means need not be tried, "" when it can.
func (r *returning) lacks(m Means, answers bool) string {
	switch {
	case m == BySSH && !answers:
		return fmt.Sprintf("the target does not answer: %v", r.gone)
	case m == BySysRq && r.t.Console == nil:
		return "the target has no console block"
	case m == ByPower && r.t.Power == nil:
		return "the target has no power block"
	}
	return ""
}

// method starts the kernel as any other.
func (r *returning) method(ctx context.Context) error {
	return r.start(ctx, r.t.Boot, "boot method")
}

// asItIs takes what runs, without starting anything.
func (r *returning) asItIs(ctx context.Context) error {
	pctx, stop := context.WithTimeout(ctx, 2*r.t.Timeout.WithDefaults().Exec)
	defer stop()
	ev, err := Probe(pctx, r.t.Held)
	if err != nil {
		return err
	}
	ev.Fill(&r.rec)
	r.conn = r.t.Held
	return nil
}

// start is a Boot by b, whose failure is kept under a name.
func (r *returning) start(ctx context.Context, b Booter, name string) error {
	own, limits := r.t.Boot, r.t.Timeout
	defer func() { r.t.Boot, r.t.Timeout = own, limits }()
	r.t.Boot = b
	if s, ok := b.(*restarted); ok {
		r.t.Timeout.Boot = limits.WithDefaults().Boot + s.most
	}
	conn, rec, err := Boot(ctx, r.t, r.k, r.log)
	r.rec = rec
	if err == nil {
		r.conn = conn
		return nil
	}
	if s, ok := b.(*restarted); ok && s.err != nil {
		err = s.err
	}
	r.fail(fmt.Errorf("%s: %w", name, err))
	return err
}

func (r *returning) fail(err error) {
	r.failed = append(r.failed, err)
	if r.log.Note != nil {
		r.log.Note("not back yet after " + time.Since(r.begin).Round(time.Second).String() + ": " + err.Error())
	}
}

// SwitchedOn makes sure that t runs before anything is asked of it: one that does
// not answer is switched on by its supply and given Timeouts.Boot to answer; if
// that brings nothing it is restarted as by Return. how is "" when it answered
// at once, and t.Held is the link.
func SwitchedOn(ctx context.Context, t *Target, log BootLog) (how string, err error) {
	r := &returning{t: t, log: log, begin: time.Now()}
	if r.answers(ctx) {
		return "", nil
	}
	if t.Power != nil && ctx.Err() == nil {
		err := r.start(ctx, &restarted{own: TraitsOf(t.Boot), most: onTime, f: func(ctx context.Context, t *Target) error { return switchOn(ctx, t.Power) }}, "power on")
		if err == nil {
			return fmt.Sprintf("switched on, it answers after %s", time.Since(r.begin).Round(time.Second)), nil
		}
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	_, _, how, err = Return(ctx, t, Kernel{}, log)
	return how, err
}
