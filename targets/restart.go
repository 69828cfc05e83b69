package targets

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// powerOff is how long a supply stays off, so that capacitors run empty.
const powerOff = 2 * time.Second

// PowerCycle switches t off and, after a moment, on.
func PowerCycle(ctx context.Context, t *Target) error {
	if t.Power == nil {
		return fmt.Errorf("target %s has no power block", t.Name)
	}
	if err := t.Power.Set(ctx, false); err != nil {
		return fmt.Errorf("off: %w", err)
	}
	wait := time.NewTimer(powerOff)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	// On again also when ctx has ended in between: nobody wants it left off.
	octx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	if err := t.Power.Set(octx, true); err != nil {
		return fmt.Errorf("on: %w", err)
	}
	return context.Cause(ctx)
}

// Restart makes t start anew by the gentlest means that works: over SSH where
// its system answers, else by its supply. It returns how, and does not wait for
// what comes up.
func Restart(ctx context.Context, t *Target) (how string, err error) {
	var causes []error
	if err := restartBySSH(ctx, t); err == nil {
		return "ssh", nil
	} else {
		causes = append(causes, fmt.Errorf("ssh: %w", err))
	}
	if t.Power != nil {
		err := PowerCycle(ctx, t)
		if err == nil {
			return "power", nil
		}
		causes = append(causes, fmt.Errorf("power: %w", err))
	} else {
		causes = append(causes, errors.New("power: the target has no power block"))
	}
	return "", fmt.Errorf("target %s cannot be restarted: %w", t.Name, errors.Join(causes...))
}

func restartBySSH(ctx context.Context, t *Target) error {
	ctx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	conn := t.Held
	if conn == nil {
		c, err := t.Dial(ctx, t.SSH, DialOptions{})
		if err != nil {
			return err
		}
		defer c.Close()
		conn = c
	}
	return AskReboot(ctx, conn, "")
}
