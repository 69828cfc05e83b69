package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// await waits until the started system answers over SSH with a new boot_id.
func (b *booting) await(ctx context.Context) (Conn, string, error) {
	if b.traits.Running {
		conn, id, err := b.awaitDown(ctx)
		if err != nil || conn != nil {
			return conn, id, err
		}
	}
	if b.w != nil && !b.traits.OnlyOnce {
		b.w.arm(b.time.Silence)
		if b.t.Ready != "" {
			if err := b.awaitReady(ctx); err != nil {
				return nil, "", err
			}
		}
	}
	wait := pollFirst
	for {
		begun := time.Now()
		conn, id, err := b.try(ctx, b.time.Exec)
		if conn != nil {
			return conn, id, nil
		}
		if ctx.Err() != nil {
			return nil, "", b.over(ctx)
		}
		b.lastDial = err
		if err := b.refused(err); err != nil {
			return nil, "", err
		}
		if errors.Is(err, errOldBoot) && b.phaseSeen() == PhaseKernel {
			return nil, "", b.kernelError(StageNotRebooted, fmt.Errorf("a kernel started on the console, but what answers has the boot_id of an earlier boot, %s",
				b.old[len(b.old)-1]))
		}
		if errors.Is(err, errOldBoot) && time.Since(b.handed) > b.time.Down {
			return nil, "", b.notRebooted(b.time.Down)
		}
		if err := b.consoleOver(); err != nil {
			return nil, "", err
		}
		if b.absent(err) {
			// Asking costs the machine nothing; where jump hosts have to be passed
			// for it, they rest as long as they work.
			b.pause(ctx, min(max(pollAbsent, b.viaTime(begun)), pollLast))
			continue
		}
		b.pause(ctx, wait)
		wait = min(2*wait, pollLast)
	}
}

// absent says that nobody listened: no server was disturbed by the asking.
func (b *booting) absent(err error) bool {
	var link *LinkError
	return errors.As(err, &link) && link.Hop == "" && (link.Phase == "connect" || link.Phase == "handshake" && b.traits.Emulated)
}

// viaTime is what a try since begun cost the target's jump hosts.
func (b *booting) viaTime(begun time.Time) time.Duration {
	if len(b.t.SSH.Via) == 0 {
		return 0
	}
	return time.Since(begun)
}

// awaitDown polls the old system until it is gone. It returns a Conn when a new
// boot answered in between.
func (b *booting) awaitDown(ctx context.Context) (Conn, string, error) {
	for b.phaseSeen() == PhaseAsked {
		left := b.time.Down - time.Since(b.handed)
		if left <= 0 && errors.Is(b.lastDial, errOldBoot) {
			return nil, "", b.notRebooted(b.time.Down)
		}
		if left <= 0 {
			break // whatever answers there, it is not the old boot
		}
		conn, id, err := b.try(ctx, min(left, tryTime))
		if conn != nil {
			return conn, id, nil
		}
		if ctx.Err() != nil {
			return nil, "", b.over(ctx)
		}
		b.lastDial = err
		if b.wasDown {
			break
		}
		b.pause(ctx, time.Second)
	}
	return nil, "", nil
}

// answers says that an SSH server is there, though it does not let us in. An
// emulator's network accepts connections for a guest that hangs.
func (b *booting) answers(err error) bool {
	var link *LinkError
	if !errors.As(err, &link) || link.Hop != "" {
		return false
	}
	return link.Refused || link.Phase == "log in" || link.Phase == "handshake" && !b.traits.Emulated
}

// wayBroken says that a jump host failed, so that nothing is known of the target.
func wayBroken(err error) bool {
	var link *LinkError
	return errors.As(err, &link) && link.Hop != ""
}

// refused ends the wait for a log-in that no waiting helps.
func (b *booting) refused(err error) error {
	var link *LinkError
	if errors.As(err, &link) && link.Refused {
		return fmt.Errorf("target %s: %w", b.t.Name, err)
	}
	return nil
}

// awaitReady waits for the console's word that SSH may be tried.
func (b *booting) awaitReady(ctx context.Context) error {
	for {
		st := b.w.state()
		switch {
		case st.Ready:
			return nil
		case st.Ended != nil && b.traits.Emulated:
			return b.consoleOver()
		case st.Ended != nil || st.Silent:
			// SSH may answer all the same (a wrong pattern, a console server
			// that closed), and then the probe has the last word.
			return nil
		}
		select {
		case <-b.w.changed:
		case <-ctx.Done():
			return b.over(ctx)
		}
	}
}

// try dials once, with its own deadline. conn is not nil when a new boot answered.
func (b *booting) try(ctx context.Context, limit time.Duration) (Conn, string, error) {
	if b.w != nil && b.w.state().Silent {
		limit = min(limit, lastTry)
	} else if b.w != nil && b.t.Ready == "" {
		limit = min(limit, tryTime) // so that silence is not found late
	}
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	conn, err := b.t.Dial(ctx, b.t.SSH, DialOptions{AfterBoot: !b.traits.OnlyOnce, Note: b.note})
	if err != nil {
		var link *LinkError
		if !b.wasDown && len(b.old) > 0 && errors.As(err, &link) && link.Phase == "connect" && link.Hop == "" {
			b.wasDown = true
			b.reach(PhaseDown)
		}
		return nil, "", err
	}
	id, err := ReadBootID(ctx, conn)
	if err == nil && (b.traits.OnlyOnce || !b.isOld(id)) {
		b.reach(PhaseReachable)
		return conn, id, nil
	}
	_ = conn.Close() // not the boot we wait for
	if err == nil {
		b.sawOld(id)
		err = errOldBoot
	}
	return nil, "", err
}

// sawOld notes, once, that the old boot answers.
func (b *booting) sawOld(id string) {
	if !b.noted {
		b.noted = true
		b.note("still up: boot " + id + " answers")
	}
}

func (b *booting) isOld(id string) bool {
	for _, o := range b.old {
		if o == id {
			return true
		}
	}
	return false
}

// notRebooted says that the boot from before the request answers: the fault of
// the system that was asked, or else of this kernel's start.
func (b *booting) notRebooted(waited time.Duration) error {
	id := b.old[len(b.old)-1]
	if b.traits.Running {
		return &NotDownError{b.t.Name, id, waited}
	}
	return b.kernelError(StageNotRebooted, fmt.Errorf("boot %s still answers %s after the start was asked for", id, waited))
}

// pause waits, or until the console has something to say.
func (b *booting) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	var changed chan struct{}
	if b.w != nil {
		changed = b.w.changed
	}
	select {
	case <-t.C:
	case <-changed:
	case <-ctx.Done():
	}
}

// over explains why ctx ended: interrupted, the console's verdict, or time.
func (b *booting) over(ctx context.Context) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, errBootTime) {
		return cause
	}
	switch {
	case b.traits.OnlyOnce:
		return fmt.Errorf("target %s did not answer over SSH within %s: %w", b.t.Name, b.time.Boot, orTime(b.lastDial))
	case wayBroken(b.lastDial):
		return fmt.Errorf("target %s was not reached within %s of the start, since the way to it is broken: %w", b.t.Name, b.time.Boot, b.lastDial)
	case b.answers(b.lastDial):
		return fmt.Errorf("target %s answers but does not let us in within %s of the start: %w", b.t.Name, b.time.Boot, b.lastDial)
	}
	why := fmt.Sprintf("no answer over SSH within %s", b.time.Boot)
	var st watchState
	if b.w != nil {
		st = b.w.state()
	}
	switch {
	case errors.Is(b.lastDial, errOldBoot):
		return b.notRebooted(b.time.Boot)
	case b.w == nil:
		why += " (without a console, kernel and network cannot be told apart)"
	case b.t.Ready != "" && !st.Ready:
		why += fmt.Sprintf(", and the console never showed %q%s", b.t.Ready, b.stuckAt(st))
	default:
		why += b.stuckAt(st)
	}
	if b.lastDial != nil {
		why += "; last try: " + strings.TrimSpace(b.lastDial.Error())
	}
	return b.kernelError(b.stuck(st, StageUnreachable), errors.New(why))
}

func orTime(err error) error {
	if err == nil {
		return errBootTime
	}
	return err
}
