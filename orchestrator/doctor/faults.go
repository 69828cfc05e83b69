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

// consoleMoment is how long a console may be behind SSH.
const consoleMoment = 5 * time.Second

// notBack is why nothing more is tried of a target that a step lost.
const notBack = "the target did not come back"

// boot starts a kernel by the boot method and proves it; another one than the
// known-good is then left again.
func (r *rehearsal) boot(ctx context.Context) (string, error) {
	k := r.o.Kernel
	if k == nil {
		k = r.o.Known
	}
	tr := targets.TraitsOf(r.t.Boot)
	switch {
	case k == nil:
		return "", notTried("which kernel? set known_good, or name one with --kernel")
	case tr.OnlyOnce:
		return "", notTried(fmt.Sprintf("boot method %q starts nothing", r.o.Target.BootKind))
	case tr.Image && k.Image.Kernel == "":
		return "", notTried(fmt.Sprintf("kernel %s has no image for this target: name another with --kernel", k.Name))
	}
	r.away = true
	rec, err := r.start(ctx, k)
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
	if r.o.Known == nil || k.Name == r.o.Known.Name {
		return text, nil
	}
	r.away = true
	how, err := r.comeBack(ctx)
	if err != nil {
		r.down = notBack
		return "", fmt.Errorf("%s; %w", text, err)
	}
	return text + "; back to " + r.o.Known.Name + " by " + how, nil
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
		_, err := r.start(ctx, r.o.Known)
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
	return r.fault(ctx, "echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger", "Kernel panic - not syncing")
}

// hangs stops every process but init: the kernel lives and nothing answers.
func (r *rehearsal) hangs(ctx context.Context) (string, error) {
	if why := r.riskless(r.o.Hang, "--hang"); why != "" {
		return "", notTried(why)
	}
	return r.fault(ctx, "kill -STOP -1", "")
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

// fault asks the target to do itself harm, waits until that is noticed, by a
// word on its console or by silence, and comes back.
func (r *rehearsal) fault(ctx context.Context, harm, word string) (string, error) {
	hctx, stop := context.WithCancel(ctx)
	defer stop()
	heard := r.hear(hctx, word)
	begin := time.Now()
	actx, cancel := context.WithTimeout(ctx, r.t.Timeout.WithDefaults().Exec)
	err := targets.AskReboot(actx, r.t.Held, harm)
	cancel()
	if err != nil {
		return "", err
	}
	r.away = true
	seen, err := r.noticed(ctx, heard)
	took := time.Since(begin)
	stop()
	for range heard { // its end: the console is free again
	}
	r.drop()
	if err != nil {
		return "", r.andBack(ctx, err)
	}
	how, err := r.comeBack(ctx)
	if err != nil {
		r.down = notBack
		return "", err
	}
	return fmt.Sprintf("%s after %s; back by %s", seen, round(took), how), nil
}

// hear gives the console's line with the word, and closes when it ends. Without
// a console, or a word, it never gives one.
func (r *rehearsal) hear(ctx context.Context, word string) <-chan string {
	heard := make(chan string, 1)
	if word == "" || r.t.Console == nil {
		close(heard)
		return heard
	}
	free, said, err := r.listen(ctx)
	if err != nil {
		r.note("%v", err)
		close(heard)
		return heard
	}
	go func() {
		defer close(heard)
		defer free()
		if line, err := said(ctx, word); err == nil {
			heard <- line
		}
	}()
	return heard
}

// noticed waits until the console has said it, or SSH is silent; then the console
// gets a moment more.
func (r *rehearsal) noticed(ctx context.Context, heard <-chan string) (string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, faultWait, fmt.Errorf("%s later it still answers over SSH: the fault did not happen", faultWait))
	defer stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	silent := make(<-chan time.Time)
	for {
		select {
		case line, ok := <-heard:
			if ok {
				return "console: " + line, nil
			}
			heard = nil
		case <-silent:
			return "SSH silent", nil
		case <-tick.C:
			if !r.answers(ctx) {
				tick.Stop()
				silent = time.After(consoleMoment)
				if heard == nil {
					return "SSH silent", nil
				}
			}
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
		r.down = notBack
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
