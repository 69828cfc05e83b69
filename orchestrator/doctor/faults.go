package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kernsweep/targets"
)

// faultWait is how long a fault made on purpose may take to be noticed.
const faultWait = 45 * time.Second

// boot starts the known-good kernel by the boot method and proves it.
func (r *rehearsal) boot(ctx context.Context) (string, error) {
	if r.o.Known == nil {
		return "", notTried("no kernel to come back to: set known_good, or name one with --kernel")
	}
	if targets.TraitsOf(r.t.Boot).OnlyOnce {
		return "", notTried(fmt.Sprintf("boot method %q starts nothing", r.o.Target.BootKind))
	}
	if tr := targets.TraitsOf(r.t.Boot); tr.Image && r.o.Known.Image.Kernel == "" {
		return "", notTried(fmt.Sprintf("kernel %s has no image for this target: it is only come back to", r.o.Known.Name))
	}
	rec, err := r.start(ctx)
	if err != nil {
		return "", r.andBack(ctx, err)
	}
	text := strings.TrimSpace(rec.Release + " " + rec.Scheduler.Name)
	if rec.Proven {
		text += ", proven"
	} else {
		text += ", unproven: " + rec.Unproven
	}
	for _, p := range rec.Phases[min(1, len(rec.Phases)):] {
		text += fmt.Sprintf("; %s %s", p.Phase, round(p.At.Sub(rec.Phases[0].At)))
	}
	return text, nil
}

// power switches off, sees that the right machine went silent, and switches on.
func (r *rehearsal) power(ctx context.Context) (string, error) {
	switch {
	case r.t.Power == nil:
		return "", notTried("no power block: a hang at night ends this lane")
	case r.local():
		if err := targets.PowerCycle(ctx, r.t); err != nil {
			return "", err
		}
		r.drop()
		_, err := r.start(ctx)
		return "its process was ended and started anew", err
	}
	r.away = true
	said, err := targets.SwitchOff(ctx, r.t, r.t.Power)
	if err != nil {
		return "", r.andBack(ctx, err)
	}
	r.drop()
	if strings.HasPrefix(said, "power-off is not confirmed") {
		err = errors.New(said)
	}
	begin := time.Now()
	if e := r.switchOn(ctx); e != nil {
		return "", r.andBack(ctx, e)
	}
	r.away = false
	if err != nil {
		return "", err
	}
	if r.known, err = targets.ReadBootID(ctx, r.t.Held); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s; on, and it answers after %s", said, round(time.Since(begin))), nil
}

// panics crashes the running kernel.
func (r *rehearsal) panics(ctx context.Context) (string, error) {
	if why := r.riskless(r.o.Panic, "--panic"); why != "" {
		return "", notTried(why)
	}
	return r.fault(ctx, "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger", targets.StagePanic, targets.StageOops)
}

// hangs stops every process but init: the kernel lives and nothing answers.
func (r *rehearsal) hangs(ctx context.Context) (string, error) {
	if why := r.riskless(r.o.Hang, "--hang"); why != "" {
		return "", notTried(why)
	}
	return r.fault(ctx, "kill -STOP -1")
}

// riskless says why a fault is not made, "" when it may be.
func (r *rehearsal) riskless(allowed bool, flag string) string {
	switch {
	case !allowed:
		return "not allowed: " + flag + " allows it"
	case r.local() && r.o.Known == nil:
		return "no kernel to come back to"
	case r.t.Held == nil:
		return "the target does not answer"
	}
	return ""
}

// fault asks the target to do itself harm, waits until that is noticed, by the
// console or by silence, and comes back.
func (r *rehearsal) fault(ctx context.Context, harm string, stages ...string) (string, error) {
	mark := r.t.ConsoleMark()
	begin := time.Now()
	actx, stop := context.WithTimeout(ctx, r.t.Timeout.WithDefaults().Exec)
	err := targets.AskReboot(actx, r.t.Held, harm)
	stop()
	if err != nil {
		return "", err
	}
	r.away = true
	seen, err := r.noticed(ctx, mark, stages)
	took := time.Since(begin)
	r.drop()
	if err != nil {
		return "", r.andBack(ctx, err)
	}
	how, err := r.comeBack(ctx)
	if err != nil {
		r.down = "the target did not come back"
		return "", err
	}
	return fmt.Sprintf("%s after %s; back by %s", seen, round(took), how), nil
}

// noticed waits until the console names one of the stages, or SSH is silent.
func (r *rehearsal) noticed(ctx context.Context, mark int, stages []string) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, faultWait, fmt.Errorf("%s later it still answers over SSH: the fault did not happen", faultWait))
	defer stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, e := range r.t.ConsoleEvents(mark) {
			for _, s := range stages {
				if e.Stage == s {
					return "console: " + e.Line, nil
				}
			}
		}
		if !r.answers(ctx) {
			return "SSH silent", nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// answers runs a small command over the link.
func (r *rehearsal) answers(ctx context.Context) bool {
	ctx, stop := context.WithTimeout(ctx, 3*time.Second)
	defer stop()
	id, err := targets.ReadBootID(ctx, r.t.Held)
	return err == nil && id == r.known
}

// andBack adds to a failure whether the target came back after it.
func (r *rehearsal) andBack(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	r.drop()
	how, e := r.comeBack(ctx)
	if e != nil {
		r.down = "the target did not come back"
		return fmt.Errorf("%w; and it did not come back: %w", err, e)
	}
	return fmt.Errorf("%w (it is back, by %s)", err, how)
}

// comeBack brings the target to its known-good kernel, or to whatever answers.
func (r *rehearsal) comeBack(ctx context.Context) (how string, err error) {
	var k targets.Kernel
	if r.o.Known != nil {
		k = *r.o.Known
	}
	conn, rec, how, err := targets.Return(ctx, r.t, k, r.log())
	if err != nil {
		return "", err
	}
	r.t.Held, r.known, r.away = conn, rec.BootID, false
	return how, nil
}

// drop lets go of a link that leads to nothing.
func (r *rehearsal) drop() {
	if r.t.Held != nil {
		_ = r.t.Held.Close() // its system is gone
		r.t.Held = nil
	}
}
