package qemu

import (
	"fmt"
	"os"

	"kernsweep/targets"
)

// Ready says on what the machine will run, as far as that is known before it
// runs, or why it cannot. It starts nothing.
func (m *Machine) Ready(t *targets.Target) (string, error) {
	e, err := m.emulated(t.Arch)
	if err != nil {
		return "", err
	}
	if m.HostKey != "" && len(t.SSH.HostKeys) == 0 {
		if _, err := os.ReadFile(m.HostKey); err != nil {
			return "", fmt.Errorf("the guest's host key: %w (scripts/lab makes it)", err)
		}
	}
	kvm := "TCG"
	switch {
	case m.Icount != "":
		kvm = "TCG, its clock by -icount"
	case m.Accel == "kvm":
		if err := openKVM(); err != nil {
			return "", fmt.Errorf("accel is \"kvm\", and it cannot be used: %w", err)
		}
		kvm = "KVM"
	case m.Accel != "tcg" && e.kvm:
		if kvm = "KVM if a trial of it works, else TCG"; openKVM() != nil {
			kvm = "TCG, as /dev/kvm does not open"
		}
	}
	return e.program + ", " + kvm, nil
}

func openKVM() error {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return f.Close()
}
