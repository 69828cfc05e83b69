package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// labFile is a file of the virtual lab, which scripts/lab makes.
func labFile(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "lab", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("scripts/lab makes what this test needs: %v", err)
	}
	return path
}

const labReady = "kernsweep-lab: ready"

// labTarget is a machine whose guest is the lab's, reached at a port of 127.0.0.1.
func labTarget(t testing.TB, m *targetstest.Machine, port int) *targets.Target {
	return &targets.Target{
		Name: "lab", Arch: "amd64", Power: m, Console: m, Ready: labReady,
		SSH: targets.SSH{Host: "127.0.0.1", Port: port, User: "root", Key: labFile(t, "keys/id_ed25519"),
			ConfigFile: "none", KnownHosts: labFile(t, "keys/known_hosts"), HostKeys: []string{hostKeyOf(t)}},
		Timeout: targets.Timeouts{Boot: 4 * time.Minute, Down: 90 * time.Second, Silence: 20 * time.Second, Exec: 60 * time.Second},
		Dial:    sshconn.New(zap.NewNop()).Dial,
	}
}

func hostKeyOf(t testing.TB) string {
	b, err := os.ReadFile(labFile(t, "keys/host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b))[:2], " ")
}

// labKernel is one of the lab's kernels with more arguments.
func labKernel(t testing.TB, version, args string) targets.Kernel {
	return targets.Kernel{
		Name: "v" + strings.ReplaceAll(version, ".", "") + strings.ReplaceAll(args, "lab.fault=", "-"), Release: version + ".*",
		Cmdline: args,
		Image: targets.Image{
			Kernel:  labFile(t, "img/vmlinuz-amd64-"+version),
			Initrd:  labFile(t, "img/base-amd64.cpio") + "," + labFile(t, "img/mods-amd64-"+version+".cpio"),
			Cmdline: "console=ttyS0 nokaslr panic=5 quiet loglevel=5",
		},
	}
}

// newUBootX86 is a PC whose firmware is U-Boot. QEMU's own TFTP server gives out root.
func newUBootX86(t testing.TB, root string) (*targetstest.Machine, int) {
	t.Helper()
	rom := "/usr/lib/u-boot/qemu-x86/u-boot.rom"
	if _, err := os.Stat(rom); err != nil {
		t.Fatalf("the package u-boot-qemu has it: %v", err)
	}
	port := targetstest.FreePort(t)
	m := targetstest.NewMachine(t, "qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "512", "-bios", rom, "-vga", "none",
		"-netdev", "user,id=n1,tftp="+root, "-device", "e1000,netdev=n1,romfile=",
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:22", port), "-device", "virtio-net-pci,netdev=n0,romfile=")
	return m, port
}

// TestUBootX86 is the whole chain on a real U-Boot: interrupted on the serial
// line, loaded by TFTP, proven by the nonce; kernels that panic, hang or are
// another one are told apart, and the machine comes back every time.
func TestUBootX86(t *testing.T) {
	root := t.TempDir()
	m, port := newUBootX86(t, root)
	tg := labTarget(t, m, port)
	u := &UBoot{Netload: Netload{TFTP: "10.0.2.2", Root: root}, Setup: []string{"pci enum"}, loaderNet: loaderNet{Address: "10.0.2.15", Gateway: "10.0.2.2"},
		KernelAddr: "0x4000000", InitrdAddr: "0x8000000"}
	if err := u.Check(); err != nil {
		t.Fatal(err)
	}
	tg.Boot = u
	t.Cleanup(func() { tg.StopConsole(); u.Close() })
	ctx, stop := context.WithTimeout(t.Context(), 8*time.Minute)
	defer stop()
	begin := time.Now()
	_, rec, err := targets.Boot(ctx, tg, labKernel(t, "6.1", ""), targets.BootLog{})
	t.Logf("after %s: %v\n%+v", time.Since(begin), err, rec)
	if err != nil || !rec.Proven {
		t.Fatalf("%v\n%s", err, m.Said())
	}
}
