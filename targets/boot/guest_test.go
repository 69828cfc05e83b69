package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// guestKernel is a kernel of the virtual lab with a userland, "6.1" or "6.12".
func guestKernel(t testing.TB, version string) targets.Kernel {
	t.Helper()
	return targets.Kernel{Name: "k" + strings.ReplaceAll(version, ".", ""), Release: version + ".*", Image: targets.Image{
		Kernel: labFile(t, "img/vmlinuz-amd64-"+version),
		Initrd: labFile(t, "img/base-amd64.cpio") + "," + labFile(t, "img/mods-amd64-"+version+".cpio"),
	}}
}

// guestArgs are QEMU's arguments for a kernel of its own, the device's default.
func guestArgs(t testing.TB, k targets.Kernel, cmdline string, segments ...string) []string {
	t.Helper()
	initrd := filepath.Join(t.TempDir(), "initrd")
	f, err := os.Create(initrd)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	i := k.Image
	i.Initrd = strings.Join(append([]string{i.Initrd}, segments...), ",")
	if err := i.WriteInitrd(f); err != nil {
		t.Fatal(err)
	}
	return []string{"-kernel", i.Kernel, "-initrd", initrd, "-append", cmdline}
}

// kernelLine is what the guests' serial line needs.
const kernelLine = "console=ttyS0 nokaslr panic=0"

// guest is a machine whose supply is off, and the target that it is.
func guest(t testing.TB, args ...string) (*targetstest.Machine, *targets.Target) {
	t.Helper()
	port := targetstest.FreePort(t)
	m := targetstest.NewMachine(t, append([]string{"qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "320",
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:22", port), "-device", "virtio-net-pci,netdev=n0,romfile="}, args...)...)
	key, err := os.ReadFile(labFile(t, "keys/host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	tg := &targets.Target{Name: "guest", Arch: "amd64", Power: m, Console: m, Ready: "kernsweep-lab: ready",
		SSH: targets.SSH{Host: "127.0.0.1", Port: port, User: "root", Key: labFile(t, "keys/id_ed25519"), ConfigFile: "none",
			HostKeys: []string{strings.TrimSpace(string(key))}},
		Timeout: targets.Timeouts{Boot: 4 * time.Minute, Silence: 30 * time.Second, Down: time.Minute},
		Dial:    sshconn.New(zap.NewNop()).Dial, Agent: buildAgent(t)}
	t.Cleanup(func() {
		if tg.Held != nil {
			_ = tg.Held.Close()
		}
		tg.StopConsole()
		if t.Failed() {
			said := m.Said()
			t.Logf("the console ends with:\n%s", said[max(0, len(said)-3000):])
		}
	})
	return m, tg
}

// buildAgent gives the agent of this source tree.
func buildAgent(t testing.TB) func(string) ([]byte, error) {
	dir := t.TempDir()
	return func(goarch string) ([]byte, error) {
		out := filepath.Join(dir, goarch)
		c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "../../cmd/kernsweep-agent")
		c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		if msg, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, msg)
		}
		return os.ReadFile(out)
	}
}

// powerOn cycles the supply and waits until the default kernel answers.
func powerOn(t testing.TB, m *targetstest.Machine, tg *targets.Target) {
	t.Helper()
	if tg.Held != nil {
		_ = tg.Held.Close()
		tg.Held = nil
	}
	for _, on := range []bool{false, true} {
		if on {
			// One guest boots at a time: they share the processors.
			booting.Lock()
			defer booting.Unlock()
		}
		if err := m.Set(t.Context(), on); err != nil {
			t.Fatal(err)
		}
	}
	ready := strings.Count(m.Said(), tg.Ready)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if strings.Count(m.Said(), tg.Ready) > ready {
			conn, err := tg.Dial(ctx, tg.SSH, targets.DialOptions{})
			if err == nil {
				tg.Held = conn
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("the guest does not come up")
		}
	}
}

var booting sync.Mutex

// bootGuest boots k by targets.Boot.
func bootGuest(t testing.TB, tg *targets.Target, k targets.Kernel) (targets.BootRecord, error) {
	t.Helper()
	_, rec, err := targets.Boot(t.Context(), tg, k, targets.BootLog{})
	return rec, err
}

// wantStage checks that a boot failed as a fact about the kernel.
func wantStage(t testing.TB, err error, stages ...string) {
	t.Helper()
	var be *targets.BootError
	if !errors.As(err, &be) || !strings.Contains(" "+strings.Join(stages, " ")+" ", " "+be.Stage+" ") {
		t.Errorf("%v; want a boot error at stage %q", err, stages)
	}
}

// release is what runs on tg now.
func release(t testing.TB, tg *targets.Target) string {
	t.Helper()
	out, err := shell(t.Context(), tg.Held, "uname -r")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
