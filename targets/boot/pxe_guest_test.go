package boot

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
	"kernsweep/targets/tftp"
)

// inNamespace runs the calling test once more in a network namespace of its own
// and says whether this is that run. The lab there is a bridge with two ports for
// guests; 10.0.2.2 is the controller.
func inNamespace(t *testing.T) bool {
	const mark = "KERNSWEEP_TEST_NAMESPACE"
	if os.Getenv(mark) == "" {
		ctx, stop := context.WithTimeout(t.Context(), 13*time.Minute)
		defer stop()
		name := "^" + t.Name() + "$"
		if _, part, ok := strings.Cut(flag.Lookup("test.run").Value.String(), "/"); ok {
			name += "/" + part
		}
		args := []string{"-n", os.Args[0], "-test.run=" + name, "-test.timeout=12m", "-test.v=" + fmt.Sprint(testing.Verbose())}
		if os.Geteuid() != 0 {
			args = append([]string{"-r"}, args...)
		}
		c := exec.CommandContext(ctx, targetstest.Tool(t, "unshare"), args...)
		c.Env = append(os.Environ(), mark+"=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		} else if testing.Verbose() {
			t.Logf("%s", out)
		}
		return false
	}
	ip := targetstest.Tool(t, "ip", "/usr/sbin/ip", "/sbin/ip")
	for _, args := range []string{"link set lo up", "link add br0 type bridge forward_delay 0", "addr add 10.0.2.2/24 dev br0", "link set br0 up",
		"tuntap add tap0 mode tap", "link set tap0 master br0 up", "tuntap add tap1 mode tap", "link set tap1 master br0 up"} {
		if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
	return true
}

// dhcp starts dnsmasq, which gives addresses and nothing else unless told so.
func dhcp(t *testing.T, args ...string) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command(targetstest.Tool(t, "dnsmasq", "/usr/sbin/dnsmasq"), append([]string{"-k", "-C", "/dev/null", "--port=0", "--user=root", "--interface=br0", "--bind-interfaces",
		"--dhcp-range=10.0.2.15,10.0.2.40", "--dhcp-host=52:54:00:00:00:01,10.0.2.15", "--dhcp-leasefile=" + dir + "/leases", "--pid-file=", "--log-dhcp", "--log-facility=" + dir + "/log"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if b, err := os.ReadFile(dir + "/log"); err == nil && t.Failed() {
			t.Logf("dnsmasq:\n%s", b)
		}
	})
}

// ownDisk is a disk whose boot sector says so on the serial line.
func ownDisk(t *testing.T) string {
	t.Helper()
	disk := make([]byte, 1<<20)
	n := copy(disk, "\xba\xf8\x03\xbe\x11\x7c\xac\x84\xc0\x74\x03\xee\xeb\xf8\xf4\xeb\xfd") // prints what follows up to a zero, and halts
	copy(disk[n:], "\r\n"+fromDisk+"\r\n\x00")
	disk[510], disk[511] = 0x55, 0xaa
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, disk, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const fromDisk = "this is its own disk"

// netGuest is a machine that boots over the network first: number 1 or 2.
func netGuest(t *testing.T, number int) *targetstest.Machine {
	t.Helper()
	return targetstest.NewMachine(t, "qemu-system-x86_64", "-M", "pc,graphics=off", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "320",
		"-netdev", fmt.Sprintf("tap,id=n0,ifname=tap%d,script=no,downscript=no", number-1),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=n0,mac=52:54:00:00:00:%02d,bootindex=0", number),
		"-drive", "if=none,id=d0,format=raw,readonly=on,file="+ownDisk(t), "-device", "virtio-blk-pci,drive=d0,bootindex=1")
}

// efiNetGuest is guest 1 with EFI firmware, whose own PXE client is used: the
// card has no ROM with iPXE.
func efiNetGuest(t *testing.T) *targetstest.Machine {
	t.Helper()
	vars := filepath.Join(t.TempDir(), "vars.fd")
	if err := copyTo(vars, "/usr/share/OVMF/OVMF_VARS_4M.fd"); err != nil {
		t.Fatal(err)
	}
	return targetstest.NewMachine(t, "qemu-system-x86_64", "-M", "q35", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "384",
		"-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd", "-drive", "if=pflash,format=raw,file="+vars,
		"-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no",
		"-device", "virtio-net-pci,netdev=n0,mac=52:54:00:00:00:01,bootindex=0,romfile=")
}

// pxeTarget is guest 1 as a target.
func pxeTarget(t *testing.T, m *targetstest.Machine, p *PXE) *targets.Target {
	t.Helper()
	key, err := os.ReadFile(labFile(t, "keys/host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	files := tftp.New(zap.NewNop())
	tg := &targets.Target{Name: "server", Arch: "amd64", Power: m, Console: m, Ready: "kernsweep-lab: ready", Boot: p,
		SSH: targets.SSH{Host: "10.0.2.15", Port: 22, User: "root", Key: labFile(t, "keys/id_ed25519"), ConfigFile: "none",
			HostKeys: []string{strings.TrimSpace(string(key))}},
		Timeout: targets.Timeouts{Boot: 4 * time.Minute, Silence: 2 * time.Minute},
		Dial:    sshconn.New(zap.NewNop()).Dial, Serve: files.Serve}
	t.Cleanup(func() {
		if tg.Held != nil {
			_ = tg.Held.Close()
		}
		tg.StopConsole()
		if err := errors.Join(p.Close(), files.Close()); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			said := m.Said()
			t.Logf("the console ends with:\n%s", said[max(0, len(said)-3000):])
		}
	})
	return tg
}

// guestSays waits until a machine's serial line has said something n times.
func guestSays(t *testing.T, m *targetstest.Machine, what string, n int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for strings.Count(m.Said(), what) < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it did not say %q %d times", what, n)
		}
	}
}

func wantNotes(t *testing.T, rec targets.BootRecord, want ...string) {
	t.Helper()
	all := strings.Join(rec.Notes, "\n")
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("the notes lack %q:\n%s", w, all)
		}
	}
}

// pxeKernel is a kernel that restarts the machine when it panics.
func pxeKernel(t *testing.T, fault string) targets.Kernel {
	k := guestKernel(t, "6.1")
	k.Image.Cmdline = "console=ttyS0 nokaslr panic=1"
	k.Cmdline = fault
	return k
}

// A guest of real firmware in a network with a DHCP server of its own: our proxy
// names the loader, the loader finds its file, and a machine that restarts by
// itself goes to its disk. Another machine in the same network hears nothing.
// With KERNSWEEP_LONG=1 every loader has its turn, and another TFTP server's folder.
func TestPXEGuest(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	t.Run("proxy", pxeByProxy)
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		t.Run("pxelinux", func(t *testing.T) {
			pxeByLoader(t, netGuest(t, 1), &PXE{Style: []string{"pxelinux"}}, "fetched pxelinux.0", "fetched pxelinux.cfg/01-52-54-00-00-00-01")
		})
		t.Run("grub", func(t *testing.T) {
			core := grubImage(t, "core.0", "i386-pc-pxe", "/grub", "pxe")
			pxeByLoader(t, netGuest(t, 1), &PXE{Style: []string{"grub"}, BIOS: core}, "fetched core.0", "fetched grub/grub.cfg-01-52-54-00-00-00-01")
		})
		t.Run("efi", func(t *testing.T) {
			core := grubImage(t, "grubnetx64.efi", "x86_64-efi", "/grub", "efinet")
			pxeByLoader(t, efiNetGuest(t), &PXE{Style: []string{"grub"}, EFI: core}, "fetched grubnetx64.efi", "fetched grub/grub.cfg-01-52-54-00-00-00-01")
		})
		t.Run("folder", pxeByFolder)
	}
}

func pxeByProxy(t *testing.T) {
	dhcp(t)
	m, other := netGuest(t, 1), netGuest(t, 2)
	p := &PXE{Netload: Netload{TFTP: "10.0.2.2"}, MAC: "5254.0000.0001", Proxy: true}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	tg := pxeTarget(t, m, p)
	if err := other.Set(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	rec, err := bootGuest(t, tg, pxeKernel(t, ""))
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(rec.Notes, "\n"))
	}
	if !rec.Proven {
		t.Errorf("not proven: %s", rec.Unproven)
	}
	wantNotes(t, rec, "52:54:00:00:00:01 (Intel x86PC, iPXE) was told to load MAC-525400000001.ipxe from 10.0.2.2",
		"10.0.2.15 fetched MAC-525400000001.ipxe", "10.0.2.15 fetched ks-")
	guestSays(t, other, fromDisk, 1)
	if err := other.Set(t.Context(), false); err != nil {
		t.Fatal(err)
	}

	rec, err = bootGuest(t, tg, pxeKernel(t, "lab.fault=panic"))
	wantStage(t, err, targets.StagePanic)
	guestSays(t, m, fromDisk, 1) // it restarted by itself
	wantNotes(t, rec, "10.0.2.15 fetched ks-")
}

// grubImage makes a GRUB that is loaded over the network.
func grubImage(t *testing.T, name, format, prefix, driver string) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), name)
	out, err := exec.Command(targetstest.Tool(t, "grub-mkimage"), "-O", format, "-p", prefix, "-o", core,
		driver, "tftp", "net", "normal", "linux", "boot").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return core
}

// pxeByLoader boots through a loader that our proxy names.
func pxeByLoader(t *testing.T, m *targetstest.Machine, p *PXE, notes ...string) {
	dhcp(t)
	p.TFTP, p.MAC, p.Proxy = "10.0.2.2", "52:54:00:00:00:01", true
	tg := pxeTarget(t, m, p)
	rec, err := bootGuest(t, tg, pxeKernel(t, ""))
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(rec.Notes, "\n"))
	}
	wantNotes(t, rec, notes...)
}

// pxeByFolder boots where dnsmasq names pxelinux and has its files; after the end
// of the lane pxelinux goes on to the disk.
func pxeByFolder(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"/usr/lib/PXELINUX/pxelinux.0", "/usr/lib/syslinux/modules/bios/ldlinux.c32"} {
		if err := copyTo(filepath.Join(root, filepath.Base(f)), f); err != nil {
			t.Fatal(err)
		}
	}
	for dir := root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dhcp(t, "--enable-tftp", "--tftp-root="+root, "--dhcp-boot=pxelinux.0")
	m := netGuest(t, 1)
	p := &PXE{Netload: Netload{Root: root}, MAC: "52:54:00:00:00:01"}
	tg := pxeTarget(t, m, p)
	if rec, err := bootGuest(t, tg, pxeKernel(t, "")); err != nil || !rec.Proven {
		t.Fatalf("%v\n%s", err, strings.Join(rec.Notes, "\n"))
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := targets.Restart(t.Context(), tg); err != nil {
		t.Fatal(err)
	}
	guestSays(t, m, fromDisk, 1)
}
