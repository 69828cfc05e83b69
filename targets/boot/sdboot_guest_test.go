package boot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// diskModules is a segment of an initial RAM disk with modules of the lab's
// kernel, loaded after those that the guest has anyway.
func diskModules(t *testing.T, version string, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	debs, err := filepath.Glob(filepath.Join(labFile(t, "deb"), "*", "linux-image-"+version+".*_amd64.deb"))
	if err != nil || len(debs) != 1 {
		t.Fatalf("packages of kernel %s: %q %v: run scripts/lab", version, debs, err)
	}
	unpacked, root := filepath.Join(dir, "deb"), filepath.Join(dir, "root")
	run(t, targetstest.Tool(t, "dpkg-deb"), "-x", debs[0], unpacked)
	modules := filepath.Join(root, "lib/modules")
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	order := run(t, "sh", "-c", `cpio -i --quiet --to-stdout lib/modules/order <"$1"`, "sh", labFile(t, "img/mods-amd64-"+version+".cpio"))
	for _, name := range names {
		found := strings.Fields(run(t, "find", unpacked, "-name", name+".ko*"))
		if len(found) != 1 {
			t.Fatalf("module %s of kernel %s: %q", name, version, found)
		}
		reader := "cat"
		if strings.HasSuffix(found[0], ".xz") {
			reader = "xz -dc"
		}
		run(t, "sh", "-c", reader+` "$1" >"$2"`, "sh", found[0], filepath.Join(modules, name+".ko"))
		order += name + ".ko\n"
	}
	if err := os.WriteFile(filepath.Join(modules, "order"), []byte(order), 0o644); err != nil {
		t.Fatal(err)
	}
	return segment(t, root)
}

// segment packs a folder for an initial RAM disk.
func segment(t *testing.T, root string) string {
	t.Helper()
	targetstest.Tool(t, "cpio")
	out := filepath.Join(t.TempDir(), "segment.cpio")
	run(t, "sh", "-c", `cd "$1" && find . | cpio -o -H newc -R 0:0 --quiet >"$2"`, "sh", root, out)
	return out
}

// partitioned makes a disk of size MiB with one partition from 1 MiB to its end,
// of the given type, in an MBR with the given boot code.
func partitioned(t *testing.T, size int64, kind byte, code []byte) string {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk.img")
	mbr := make([]byte, 512)
	copy(mbr[:440], code)
	sectors := uint32((size - 1) << 11)
	copy(mbr[446:], []byte{0x80, 0, 2, 0, kind, 0xff, 0xff, 0xff, 0, 8, 0, 0,
		byte(sectors), byte(sectors >> 8), byte(sectors >> 16), byte(sectors >> 24)})
	mbr[510], mbr[511] = 0x55, 0xaa
	if err := os.WriteFile(disk, mbr, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(disk, size<<20); err != nil {
		t.Fatal(err)
	}
	return disk
}

// efiGuest is a machine with OVMF and systemd-boot on its ESP, whose default is
// the lab's 6.1.
func efiGuest(t *testing.T) (*targetstest.Machine, *targets.Target) {
	t.Helper()
	targetstest.Tool(t, "mcopy")
	disk := partitioned(t, 120, 0xef, nil)
	run(t, targetstest.Tool(t, "mkfs.vfat", "/usr/sbin/mkfs.vfat"), "-F", "32", "--offset", "2048", disk, "121856")
	k := labKernel(t, "6.1", "")
	args := guestArgs(t, k, "", diskModules(t, "6.1", "virtio_blk", "fat", "nls_cp437", "nls_ascii", "vfat", "efivarfs"))
	dir := t.TempDir()
	for name, text := range map[string]string{
		"loader.conf":  "timeout 0\ndefault lab-6.1.conf\n",
		"lab-6.1.conf": "title lab\nlinux /vmlinuz\ninitrd /initrd\noptions " + kernelLine + " lab.entry=default\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	image := disk + "@@1M"
	run(t, "mmd", "-i", image, "::EFI", "::EFI/BOOT", "::EFI/systemd", "::loader", "::loader/entries")
	for from, to := range map[string]string{
		"/usr/lib/systemd/boot/efi/systemd-bootx64.efi": "EFI/BOOT/BOOTX64.EFI",
		k.Image.Kernel: "vmlinuz", args[3]: "initrd",
		filepath.Join(dir, "loader.conf"): "loader/loader.conf", filepath.Join(dir, "lab-6.1.conf"): "loader/entries/lab-6.1.conf",
	} {
		run(t, "mcopy", "-i", image, from, "::"+to)
	}
	vars := filepath.Join(dir, "vars.fd")
	run(t, "cp", "/usr/share/OVMF/OVMF_VARS_4M.fd", vars)
	return guest(t, "-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd",
		"-drive", "if=pflash,format=raw,file="+vars,
		"-drive", "if=none,id=d0,format=raw,cache=writethrough,file="+disk, "-device", "virtio-blk-pci,drive=d0,bootindex=0")
}

// oneShots boots kernels that have those faults, "" being none, each once from
// the default kernel, and checks that a power cycle brings that one back. mount
// gives the running system its boot partition.
func oneShots(t *testing.T, m *targetstest.Machine, tg *targets.Target, mount func(), faults ...string) {
	t.Helper()
	if os.Getenv("KERNSWEEP_LONG") != "" {
		faults = []string{"panic", "", "spin", "reboot", "", "panic"}
	}
	for _, fault := range faults {
		mount()
		k := labKernel(t, "6.12", "")
		if fault != "" {
			k = labKernel(t, "6.12", "lab.fault="+fault)
		}
		begin := time.Now()
		rec, err := bootGuest(t, tg, k)
		t.Logf("fault %q after %s: %v", fault, time.Since(begin).Round(time.Second), err)
		switch fault {
		case "":
			if err != nil || !rec.Proven || !strings.Contains(rec.Cmdline, "lab.entry=default "+ownArgs) {
				t.Fatalf("%v: %+v", err, rec)
			}
		case "panic":
			wantStage(t, err, targets.StagePanic)
		case "spin":
			wantStage(t, err, targets.StageHang, targets.StageLockup, targets.StageRCU)
		default:
			var be *targets.BootError
			if !errors.As(err, &be) {
				t.Errorf("%v is no fact about the kernel", err)
			}
		}
		begin = time.Now()
		powerOn(t, m, tg)
		t.Logf("the default answers %s after power-on", time.Since(begin).Round(time.Second))
		if r := release(t, tg); !strings.HasPrefix(r, "6.1.") {
			t.Fatalf("after a power cycle %s runs", r)
		}
	}
}

// The whole way on a machine with EFI firmware.
func TestSDBootGuest(t *testing.T) {
	t.Parallel()
	m, tg := efiGuest(t)
	tg.Boot, tg.Timeout.Silence = &SDBoot{}, 90*time.Second // the firmware reads slowly in an emulator
	powerOn(t, m, tg)
	if _, err := bootGuest(t, tg, labKernel(t, "6.12", "")); err == nil || !strings.Contains(err.Error(), "mount the ESP") {
		t.Errorf("without the ESP: %v", err)
	}
	conn, err := tg.Dial(t.Context(), tg.SSH, targets.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tg.Held = conn
	oneShots(t, m, tg, func() {
		if _, err := shell(t.Context(), tg.Held, "mkdir -p /efi && mount -t vfat /dev/vda1 /efi"); err != nil {
			t.Fatal(err)
		}
	}, "panic")
}
