package boot

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// maltaFlash is the flash of a little-endian Malta with U-Boot in it. QEMU swaps
// the bytes of each word of the firmware at its start (hw/mips/malta.c), so they
// are stored swapped; the environment behind stays erased.
func maltaFlash(t testing.TB) string {
	t.Helper()
	const firmware, flash = 0x3e0000, 0x400000
	code, err := os.ReadFile("/usr/lib/u-boot/maltael/u-boot.bin")
	if err != nil {
		t.Fatalf("the package u-boot-qemu has it: %v", err)
	}
	image := make([]byte, flash)
	for i := range image {
		image[i] = 0xff
	}
	copy(image, code)
	for i := 0; i < firmware; i += 4 {
		binary.BigEndian.PutUint32(image[i:], binary.LittleEndian.Uint32(image[i:]))
	}
	path := filepath.Join(t.TempDir(), "flash")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// uImage packs the lab's MIPS kernel for bootm.
func uImage(t testing.TB) targets.Image {
	t.Helper()
	dir := t.TempDir()
	raw, kernel := filepath.Join(dir, "raw"), filepath.Join(dir, "uImage")
	for _, argv := range [][]string{
		{"mips-linux-gnu-objcopy", "-O", "binary", labFile(t, "img/vmlinuz-mipsel-6.1"), raw},
		{"mkimage", "-A", "mips", "-O", "linux", "-T", "kernel", "-C", "none", "-a", "0x810f0000", "-e", "0x810f0000", "-n", "lab", "-d", raw, kernel},
	} {
		if out, err := exec.Command(targetstest.Tool(t, argv[0]), argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	return targets.Image{Kernel: kernel, Initrd: labFile(t, "img/base-mipsel.cpio") + "," + labFile(t, "img/mods-mipsel-6.1.cpio"),
		Cmdline: "console=ttyS0 nokaslr panic=5 quiet mem=256M"}
}

// TestUBootMalta is a MIPS machine with U-Boot in its flash and no countdown: it
// is found at its prompt, and its block has commands of its own: what it refuses, and, in the long tests, a kernel that starts.
func TestUBootMalta(t *testing.T) {
	t.Parallel()
	port := targetstest.FreePort(t)
	m := targetstest.NewMachine(t, "qemu-system-mipsel", "-M", "malta", "-cpu", "4KEc", "-m", "256", "-accel", "tcg",
		"-drive", "if=pflash,format=raw,file="+maltaFlash(t),
		"-netdev", fmt.Sprintf("user,id=n0,hostfwd=tcp:127.0.0.1:%d-:22", port), "-device", "pcnet,netdev=n0")
	tg := labTarget(t, m, port)
	tg.Arch, tg.Serve = "mipsle", serveTFTP(t)
	u := &UBoot{Netload: Netload{TFTP: tftpMalta}, loaderNet: loaderNet{Address: "10.0.2.15", Gateway: "10.0.2.2"},
		// This loader tells the kernel of an initrd in a way that Linux does not read.
		Commands: []string{"tftpboot 0x84000000 ${ks_kernel}", "tftpboot 0x85000000 ${ks_initrd}",
			"setenv bootargs ${ks_args} rd_start=0x85000000 rd_size=0x${filesize}", "bootm 0x84000000"}}
	if err := u.Check(); err != nil {
		t.Fatal(err)
	}
	tg.Boot = u
	t.Cleanup(func() { tg.StopConsole(); u.Close() })
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	bad := image(t, 0, "\x27\x05\x19\x56", 64<<10) // its header's checksum is wrong
	bad.Image.Initrd = labFile(t, "img/mods-mipsel-6.1.cpio")
	_, rec, err := targets.Boot(ctx, tg, bad, targets.BootLog{})
	if stageOf(t, err) != targets.StageRefused {
		t.Fatalf("%v %q\n%s", err, rec.Notes, m.Said())
	}
	if os.Getenv("KERNSWEEP_LONG") == "" {
		return
	}
	begin := time.Now()
	_, rec, err = targets.Boot(ctx, tg, targets.Kernel{Name: "cfs", Release: "6.1.*", Image: uImage(t)}, targets.BootLog{})
	t.Logf("%s: %q, %q", time.Since(begin).Round(100*time.Millisecond), rec.Cmdline, rec.Notes)
	if err != nil || !rec.Proven {
		t.Fatalf("%v\n%s", err, m.Said())
	}
}
