package boot

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// biosGuest is a machine with a BIOS and EXTLINUX on an ext4 disk, whose default
// is the lab's 6.1. EXTLINUX is installed by a guest too: its installer needs a
// mounted file system.
func biosGuest(t *testing.T) (*targetstest.Machine, *targets.Target) {
	t.Helper()
	code, err := os.ReadFile("/usr/lib/EXTLINUX/mbr.bin")
	if err != nil {
		t.Fatal(err)
	}
	disk := partitioned(t, 160, 0x83, code)
	tools := filepath.Join(t.TempDir(), "usr/bin")
	tree := t.TempDir()
	k := labKernel(t, "6.1", "")
	for _, d := range []string{tools, filepath.Join(tree, "boot/extlinux")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run(t, "cp", targetstest.Tool(t, "extlinux"), tools)
	args := guestArgs(t, k, kernelLine, diskModules(t, "6.1", "virtio_blk"), segment(t, filepath.Dir(filepath.Dir(tools))))
	run(t, "cp", k.Image.Kernel, filepath.Join(tree, "boot/vmlinuz"))
	run(t, "cp", args[3], filepath.Join(tree, "boot/initrd"))
	conf := "SERIAL 0 115200\nDEFAULT lab\nPROMPT 0\nTIMEOUT 10\nLABEL lab\n  LINUX /boot/vmlinuz\n  INITRD /boot/initrd\n  APPEND " + kernelLine + " lab.entry=default\n"
	if err := os.WriteFile(filepath.Join(tree, "boot/extlinux/extlinux.conf"), []byte(conf), 0o640); err != nil {
		t.Fatal(err)
	}
	// Blocks of 4 KiB: with smaller ones mke2fs leaves holes in the kernel, at
	// which SYSLINUX 6.04 says "I/O error".
	run(t, targetstest.Tool(t, "mke2fs", "/usr/sbin/mke2fs"), "-q", "-t", "ext4", "-b", "4096", "-O", "^64bit,^metadata_csum", "-d", tree, "-E", "offset=1048576", disk, "159m")
	drive := []string{"-drive", "if=none,id=d0,format=raw,cache=writethrough,file=" + disk, "-device", "virtio-blk-pci,drive=d0"}

	m, tg := guest(t, append(args, drive...)...)
	powerOn(t, m, tg)
	mountDisk(t, tg)
	if _, err := shell(t.Context(), tg.Held, "extlinux --install /disk/boot/extlinux && sync && umount /boot /disk && sync"); err != nil {
		t.Fatal(err)
	}
	_ = tg.Held.Close()
	tg.Held = nil
	if err := m.Set(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return guest(t, drive...)
}

// mountDisk gives a guest its /boot, which is a folder of another file system.
func mountDisk(t *testing.T, tg *targets.Target) {
	t.Helper()
	if _, err := shell(t.Context(), tg.Held, "mkdir -p /disk /boot && mount -t ext4 /dev/vda1 /disk && mount -o bind /disk/boot /boot"); err != nil {
		t.Fatal(err)
	}
}

// The whole way on a BIOS machine.
func TestExtlinuxGuest(t *testing.T) {
	t.Parallel()
	m, tg := biosGuest(t)
	tg.Boot, tg.Timeout.Silence = &Extlinux{}, 90*time.Second // the BIOS reads slowly in an emulator
	powerOn(t, m, tg)
	oneShots(t, m, tg, func() { mountDisk(t, tg) }, "")
}
