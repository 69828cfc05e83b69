package boot

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
	"kernsweep/targets/tftp"
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
		Timeout: targets.Timeouts{Boot: 4 * time.Minute, Down: 90 * time.Second, Silence: 45 * time.Second, Exec: 60 * time.Second},
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
			Cmdline: "console=ttyS0 nokaslr no_timer_check panic=5 quiet loglevel=5",
		},
	}
}

// Where these tests serve files, each at its own address: the guests reach them
// through the gateway of QEMU's network.
const tftpX86, tftpMalta = "127.0.0.69", "127.0.0.70"

// newUBootX86 is a PC whose firmware is U-Boot, with a disk of which it starts a
// kernel when nobody stops it.
func newUBootX86(t testing.TB, disk string) (*targetstest.Machine, int) {
	t.Helper()
	rom := "/usr/lib/u-boot/qemu-x86/u-boot.rom"
	if _, err := os.Stat(rom); err != nil {
		t.Fatalf("the package u-boot-qemu has it: %v", err)
	}
	port := targetstest.FreePort(t)
	argv := []string{"qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-cpu", "max,-cx16", "-m", "512", "-bios", rom, "-vga", "none",
		"-netdev", "user,id=n1", "-device", "e1000,netdev=n1,romfile=",
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:22", port), "-device", "virtio-net-pci,netdev=n0,romfile="}
	if disk != "" {
		argv = append(argv, "-drive", "file="+disk+",format=raw,if=ide,snapshot=on")
	}
	return targetstest.NewMachine(t, argv...), port
}

// flashDisk has a kernel that U-Boot starts by itself.
func flashDisk(t testing.TB) string {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	conf := filepath.Join(t.TempDir(), "extlinux.conf")
	k := labKernel(t, "6.12", "")
	if err := os.WriteFile(conf, []byte("default l\ntimeout 1\nlabel l\n linux /vmlinuz\n initrd /initrd\n append "+k.Image.Cmdline+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	initrd, err := os.Create(filepath.Join(t.TempDir(), "initrd"))
	if err != nil {
		t.Fatal(err)
	}
	defer initrd.Close()
	if err := k.Image.WriteInitrd(initrd); err != nil {
		t.Fatal(err)
	}
	mbr := make([]byte, 512) // one bootable partition of FAT32 from 1 MiB on
	copy(mbr[446:], "\x80\xff\xff\xff\x0c\xff\xff\xff\x00\x08\x00\x00\x00\xf8\x01\x00")
	copy(mbr[510:], "\x55\xaa")
	if err := os.WriteFile(disk, mbr, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, 64<<20); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"mformat", "-i", disk + "@@1M", "-F", "::"},
		{"mmd", "-i", disk + "@@1M", "::/extlinux"},
		{"mcopy", "-i", disk + "@@1M", conf, "::/extlinux/extlinux.conf"},
		{"mcopy", "-i", disk + "@@1M", k.Image.Kernel, "::/vmlinuz"},
		{"mcopy", "-i", disk + "@@1M", initrd.Name(), "::/initrd"},
	} {
		if out, err := exec.Command(targetstest.Tool(t, argv[0]), argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	return disk
}

// deafMachine loses what is typed until it was switched off a number of times.
type deafMachine struct {
	*targetstest.Machine
	offs, until atomic.Int32
}

func (m *deafMachine) Set(ctx context.Context, on bool) error {
	if !on {
		m.offs.Add(1)
	}
	return m.Machine.Set(ctx, on)
}

func (m *deafMachine) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	line, err := m.Machine.Open(ctx)
	return &deafLine{line, m}, err
}

type deafLine struct {
	io.ReadWriteCloser
	m *deafMachine
}

func (l *deafLine) Write(p []byte) (int, error) {
	if l.m.offs.Load() < l.m.until.Load() {
		return len(p), nil
	}
	return l.ReadWriteCloser.Write(p)
}

// serveTFTP is this product's own TFTP server.
func serveTFTP(t testing.TB) targets.ServeFunc {
	pool := tftp.New(zap.NewNop())
	t.Cleanup(func() { pool.Close() })
	return pool.Serve
}

// boots is what a series does, and what must come of each.
type boots []struct {
	name  string
	k     targets.Kernel
	stage string // "" it is proven
	miss  bool   // the autoboot window is missed at first
}

// TestUBootX86 is the whole chain on a real U-Boot: stopped on the serial line,
// loaded by TFTP from our own server, proven by the nonce; kernels that panic, hang or are
// another one are told apart, and the machine comes back every time.
func TestUBootX86(t *testing.T) {
	t.Parallel()
	machine, port := newUBootX86(t, flashDisk(t))
	m := &deafMachine{Machine: machine}
	tg := labTarget(t, machine, port)
	tg.Console, tg.Power, tg.Serve = m, m, serveTFTP(t)
	u := &UBoot{Netload: Netload{TFTP: tftpX86}, Setup: []string{"pci enum"}, Network: "dhcp",
		KernelAddr: "0x4000000", InitrdAddr: "0x8000000"}
	if err := u.Check(); err != nil {
		t.Fatal(err)
	}
	tg.Boot = u
	t.Cleanup(func() { tg.StopConsole(); u.Close() })
	wrong := labKernel(t, "6.1", "")
	wrong.Release = "6.12.*"
	// Longer than a line of this loader, with what parsers take away.
	good := labKernel(t, "6.1", `ks.a="b c;d" ks.g=$h ks.i=j\k `+strings.Repeat("ks.filler=0123456789abcdef,0123456789 ", 9))
	good.Name = "good"
	series := boots{{"panic", labKernel(t, "6.1", "lab.fault=panic"), targets.StagePanic, false}, {"good", good, "", false}}
	if os.Getenv("KERNSWEEP_LONG") != "" {
		for range 4 {
			series = append(series, boots{{"hang", labKernel(t, "6.1", "lab.fault=spin"), targets.StageHang, false}, {"good", labKernel(t, "6.12", ""), "", false},
				{"wrong", wrong, targets.StageWrongKernel, false}, {"missed at first", good, "", true}, {"panic", labKernel(t, "6.12", "lab.fault=panic"), targets.StagePanic, false}}...)
		}
	}
	for i, s := range series {
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		if s.miss {
			m.until.Store(m.offs.Load() + 2) // the first restart may be by SSH
		}
		begin, offs := time.Now(), m.offs.Load()
		_, rec, err := targets.Boot(ctx, tg, s.k, targets.BootLog{})
		stop()
		t.Logf("%d %s: %s, switched off %d times: %v %q", i, s.name, time.Since(begin).Round(100*time.Millisecond), m.offs.Load()-offs, err, rec.Notes)
		if stageOf(t, err) != s.stage || s.stage == "" && (err != nil || !rec.Proven) {
			t.Fatalf("%s: %v\n%s", s.name, err, m.Said())
		}
		if s.miss && !strings.Contains(strings.Join(rec.Notes, " "), "missed autoboot window") {
			t.Errorf("the notes do not say that it was missed: %q", rec.Notes)
		}
	}
}
