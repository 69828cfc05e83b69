package boot

import (
	"context"
	"errors"
	"fmt"

	"kernsweep/targets"
)

// SSHReboot asks the running system to reboot into whatever its own loader
// boots. Root, or a command that may, is needed on the target.
type SSHReboot struct {
	Command string `hcl:"command,optional" doc:"shell command that reboots (default: reboot, and reboot -f when that fails)"`
}

// Boot asks, and returns before the system goes down.
func (s *SSHReboot) Boot(ctx context.Context, t *targets.Target, _ targets.Kernel) error {
	if t.Held == nil {
		return errors.New("ssh-reboot: no link to the running system")
	}
	ctx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	if err := targets.AskReboot(ctx, t.Held, s.Command); err != nil {
		return fmt.Errorf("ssh-reboot: %w", err)
	}
	return nil
}

// Traits of the method.
func (*SSHReboot) Traits() targets.BootTraits { return targets.BootTraits{Running: true} }
