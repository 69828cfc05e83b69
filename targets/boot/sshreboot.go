package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kernsweep/targets"
)

// SSHReboot asks the running system to reboot into whatever its own loader
// boots. Root, or a command that may, is needed on the target.
type SSHReboot struct {
	Command string `hcl:"command,optional" doc:"shell command that reboots (default: reboot, and reboot -f when that fails)"`
}

// The command outlives the login: it waits a second so that the exit status of
// the request comes back, ignores the hang-up, and holds no descriptor.
const rebootScript = `c=$1
if command -v setsid >/dev/null 2>&1; then
	setsid sh -c 'trap "" HUP; sleep 1; eval "$1"' sh "$c" </dev/null >/dev/null 2>&1 &
else
	( trap "" HUP; sleep 1; eval "$c" ) </dev/null >/dev/null 2>&1 &
fi
exit 0`

// Boot asks, and returns before the system goes down.
func (s *SSHReboot) Boot(ctx context.Context, t *targets.Target, _ targets.Kernel) error {
	if t.Held == nil {
		return errors.New("ssh-reboot: no link to the running system")
	}
	command := s.Command
	if command == "" {
		command = "PATH=$PATH:/sbin:/usr/sbin; reboot || reboot -f || busybox reboot -f"
	}
	ctx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	var said strings.Builder
	e, err := t.Held.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", rebootScript, "sh", command}, Stderr: &said})
	if err != nil {
		return fmt.Errorf("ssh-reboot: asking for the reboot: %w", err)
	}
	if !e.OK() {
		return fmt.Errorf("ssh-reboot: asking for the reboot %s: %.200s", e, strings.TrimSpace(said.String()))
	}
	return nil
}

// Traits of the method.
func (*SSHReboot) Traits() targets.BootTraits { return targets.BootTraits{Running: true} }
