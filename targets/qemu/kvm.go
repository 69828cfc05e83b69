package qemu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"kernsweep/targets"
)

// kvmWait is how long the trial guest may take; under a KVM that works it needs
// about a second.
const kvmWait = 8 * time.Second

// accelerator gives "kvm" or "tcg". KVM is tried once per Machine.
func (m *Machine) accelerator(ctx context.Context, e emulation, k targets.Kernel) string {
	if m.Icount != "" || m.Accel == "tcg" {
		return "tcg"
	}
	if m.Accel == "kvm" {
		return "kvm"
	}
	if !e.kvm {
		return "tcg"
	}
	m.mu.Lock()
	tried, err := m.kvmTried, m.kvm
	m.mu.Unlock()
	if !tried {
		err = tryKVM(ctx, e, k.Image.Kernel)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kvmTried, m.kvm = ctx.Err() == nil, err
	if err != nil {
		m.notes = append(m.notes, "KVM is not used: "+err.Error())
		return "tcg"
	}
	return "kvm"
}

// tryKVM boots kernel under KVM without a root file system: it panics for want
// of one, reboots, and so ends QEMU. A smaller guest proves too little: with a
// broken nested virtualisation /dev/kvm opens, a few real-mode instructions run,
// and a kernel hangs as soon as it enters its own code.
func tryKVM(ctx context.Context, e emulation, kernel string) error {
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	dev.Close()
	hang := fmt.Errorf("/dev/kvm opens, but a guest did not get through its boot within %v", kvmWait)
	ctx, cancel := context.WithTimeoutCause(ctx, kvmWait, hang)
	defer cancel()
	cmd := exec.Command(e.program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-machine", e.machine, "-cpu", e.cpu, "-accel", "kvm", "-m", "256", "-serial", "stdio",
		"-kernel", kernel, "-append", everyKernel+" root=/dev/none")
	var out tail
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = endsWithUs()
	p := &process{program: e.program, exited: make(chan struct{})}
	if err := p.supervise(cmd); err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // not reaped yet, so it is ours
		<-p.exited
		return context.Cause(ctx)
	}
	if !bytes.Contains([]byte(out.String()), []byte("Kernel panic - not syncing: VFS")) {
		return fmt.Errorf("the trial guest failed (%s): %.300s", p.state, out.String())
	}
	return nil
}
