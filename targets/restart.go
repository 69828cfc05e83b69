package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// rebootCommand is what AskReboot runs by default.
const rebootCommand = "PATH=$PATH:/sbin:/usr/sbin; reboot || reboot -f || busybox reboot -f"

// The command outlives the login: it waits a second so that the exit status of
// the request comes back, ignores the hang-up, and holds no descriptor.
const rebootScript = `c=$1
if command -v setsid >/dev/null 2>&1; then
	setsid sh -c 'trap "" HUP; sleep 1; eval "$1"' sh "$c" </dev/null >/dev/null 2>&1 &
else
	( trap "" HUP; sleep 1; eval "$c" ) </dev/null >/dev/null 2>&1 &
fi
exit 0`

// AskReboot asks the system behind conn to run command, "" for its reboot, and
// returns before it goes down.
func AskReboot(ctx context.Context, conn Conn, command string) error {
	if command == "" {
		command = rebootCommand
	}
	var said strings.Builder
	e, err := conn.Run(ctx, Cmd{Argv: []string{"sh", "-c", rebootScript, "sh", command}, Stderr: &said})
	if err != nil {
		return fmt.Errorf("asking for the reboot: %w", err)
	}
	if !e.OK() {
		return fmt.Errorf("asking for the reboot %s: %.200s", e, strings.TrimSpace(said.String()))
	}
	return nil
}

// Means of starting a machine anew.
type Means string

// The means, gentlest first.
const (
	BySSH   Means = "ssh"
	BySysRq Means = "sysrq"
	ByPower Means = "power"
)

// Restart makes t start anew by the gentlest means that works: over SSH where
// its system answers, by the magic SysRq key over its console, by its supply. It
// returns as soon as the restart is under way (the console shows it, the old
// boot does not answer any more, or the supply is on again) and does not wait for
// what comes up. A system that is asked over SSH has Timeouts.Down to go; then
// the next means is tried. how is the means that worked, and after it in
// brackets what failed before. A supply that switches another machine is an
// *OutletError.
func Restart(ctx context.Context, t *Target) (how string, err error) {
	var failed []error
	for _, m := range []Means{BySSH, BySysRq, ByPower} {
		err := RestartBy(ctx, t, m)
		if err == nil {
			return string(m) + inBrackets(failed), nil
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		failed = append(failed, fmt.Errorf("%s: %w", m, err))
	}
	return "", fmt.Errorf("target %s cannot be restarted: %w", t.Name, joined(failed))
}

// joined is errors.Join on one line.
func joined(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return fmt.Errorf("%w; %w", joined(errs[:len(errs)-1]), errs[len(errs)-1])
}

func inBrackets(failed []error) string {
	if len(failed) == 0 {
		return ""
	}
	return " (" + joined(failed).Error() + ")"
}

// RestartBy makes t start anew by one means, as Restart does.
func RestartBy(ctx context.Context, t *Target, m Means) error {
	switch m {
	case BySSH:
		return t.restartBySSH(ctx)
	case BySysRq:
		return t.restartBySysRq(ctx)
	default:
		return PowerCycle(ctx, t)
	}
}

// restartTime is the most that a means takes until the restart is under way.
func (t *Target) restartTime(m Means) time.Duration {
	limits := t.Timeout.WithDefaults()
	switch m {
	case BySSH:
		return 2*tryTime + limits.Exec + limits.Down
	case BySysRq:
		return sysrqTime
	default:
		return lifeTime + powerTime + silentTime + powerOff + onTime
	}
}

// restartBySSH asks the running system, and waits until it goes down.
func (t *Target) restartBySSH(ctx context.Context) error {
	limits := t.Timeout.WithDefaults()
	conn, id, err := t.running(ctx)
	if err != nil {
		return err
	}
	if conn != t.Held {
		defer conn.Close()
	}
	h, err := t.listen(ctx)
	if err != nil {
		h = nil // SSH alone tells then
	}
	defer h.close()
	actx, stop := context.WithTimeout(ctx, limits.Exec)
	defer stop()
	if err := AskReboot(actx, conn, ""); err != nil {
		return err
	}
	return t.goneDown(ctx, id, h, limits.Down)
}

// running is a link to the running system and its boot_id: the one held, or
// else a new one.
func (t *Target) running(ctx context.Context) (Conn, string, error) {
	if t.Held != nil {
		hctx, stop := context.WithTimeout(ctx, tryTime/2)
		id, err := ReadBootID(hctx, t.Held)
		stop()
		if err == nil {
			return t.Held, id, nil
		}
	}
	dctx, stop := context.WithTimeout(ctx, tryTime)
	defer stop()
	conn, err := t.Dial(dctx, t.SSH, DialOptions{})
	if err != nil {
		return nil, "", err
	}
	id, err := ReadBootID(dctx, conn)
	if err != nil {
		_ = conn.Close() // of no use
		return nil, "", err
	}
	return conn, id, nil
}

var errHeard = errors.New("the console shows it")

// goneDown waits until the system of boot id is gone: its console says so, SSH
// does not connect, or another boot answers.
func (t *Target) goneDown(ctx context.Context, id string, h *hearing, limit time.Duration) error {
	ctx, stop := context.WithCancelCause(ctx)
	if h != nil {
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			_ = h.lines(ctx, func(line string) bool { // a console that closes says nothing
				if restarting(line) {
					stop(errHeard)
				}
				return ctx.Err() == nil
			})
		})
	}
	defer stop(nil)
	var last error
	patience := 3 * time.Second // for a dial; more where the machine is slow to let us in
	for end := time.Now().Add(limit); time.Now().Before(end); {
		dctx, cancel := context.WithTimeout(ctx, min(patience, max(time.Until(end), time.Second)))
		gone, err := t.notAnswering(dctx, id)
		cancel()
		switch {
		case gone || errors.Is(context.Cause(ctx), errHeard):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			patience = min(2*patience, tryTime)
		}
		last = err
		if err := sleep(ctx, time.Second); err != nil {
			if errors.Is(err, errHeard) {
				return nil
			}
			return err
		}
	}
	if last == nil {
		return &NotDownError{t.Name, id, limit}
	}
	return fmt.Errorf("asked to reboot, and whether it did is not known after %s: %w", limit, last)
}

// notAnswering dials once: gone says that boot id does not answer there any
// more; an error that it cannot be said.
func (t *Target) notAnswering(ctx context.Context, id string) (gone bool, err error) {
	conn, err := t.Dial(ctx, t.SSH, DialOptions{AfterBoot: true})
	if err != nil {
		var link *LinkError
		if errors.As(err, &link) && link.Phase == "connect" && link.Hop == "" {
			return true, nil
		}
		return false, err
	}
	defer conn.Close()
	now, err := ReadBootID(ctx, conn)
	return err == nil && now != id, err
}
