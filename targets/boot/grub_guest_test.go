package boot

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// makeGrubDisk makes the disk of a PC that boots by GRUB, and its folder.
func makeGrubDisk(t *testing.T) string {
	t.Helper()
	for _, tool := range []string{"mke2fs", "grub-mkimage", "grub-editenv", "cpio", "dpkg-deb"} {
		targetstest.Tool(t, tool, "/usr/sbin/"+tool)
	}
	labFile(t, "img/vmlinuz-amd64-6.1")
	dir := t.TempDir()
	run(t, "../../scripts/lab.d/grubdisk", dir)
	return dir
}

// grubKernel is a kernel of the lab that mounts the disk's /boot.
func grubKernel(t *testing.T, dir, version, fault string) targets.Kernel {
	k := guestKernel(t, version)
	k.Image.Initrd = labFile(t, "img/base-amd64.cpio") + "," + dir + "/boot-" + version + ".cpio"
	if fault != "" {
		k.Name, k.Cmdline = fault, "lab.fault="+fault
	}
	return k
}

func grubGuest(t *testing.T, dir string) (*targetstest.Machine, *targets.Target, *Grub) {
	m, tg := guest(t, "-drive", "if=none,id=d0,format=raw,cache=writethrough,file="+dir+"/disk.img", "-device", "virtio-blk-pci,drive=d0,bootindex=0")
	g := new(Grub)
	tg.Boot = g
	tg.Timeout.Silence = 40 * time.Second // GRUB loads without a word
	return m, tg, g
}

// humanEntry is somebody's own entry, which stays.
const humanEntry = "menuentry 'memory test' { linux16 /memtest }\n"

// TestGrubSeries boots good, panicking, hanging and wrong kernels once each, again
// and again: every one is classified, and the default comes back every time.
func TestGrubSeries(t *testing.T) {
	t.Parallel()
	boots := 4
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		boots = 50
	}
	dir := makeGrubDisk(t)
	m, tg, _ := grubGuest(t, dir)
	good := grubKernel(t, dir, "6.12", "")
	wrong := grubKernel(t, dir, "6.1", "")
	wrong.Release = "6.12.*"
	kernels := []targets.Kernel{good, grubKernel(t, dir, "6.12", "panic"), grubKernel(t, dir, "6.1", "spin"), wrong}
	powerOn(t, m, tg)
	if _, err := shell(t.Context(), tg.Held, `printf %s "$1" >/boot/grub/custom.cfg; sync`, humanEntry); err != nil {
		t.Fatal(err)
	}
	for i := range boots {
		k := kernels[i%len(kernels)]
		begin := time.Now()
		rec, err := bootGuest(t, tg, k)
		t.Logf("boot %d: %s: %v after %s", i, k.Name, err, time.Since(begin).Round(100*time.Millisecond))
		switch {
		case k.Cmdline == "lab.fault=panic":
			wantStage(t, err, targets.StagePanic)
		case k.Cmdline == "lab.fault=spin":
			wantStage(t, err, targets.StageHang)
		case k.Release == wrong.Release && k.Image == wrong.Image:
			wantStage(t, err, targets.StageWrongKernel)
		case err != nil:
			t.Errorf("boot %d: %v", i, err)
		default:
			if want := rec.Cmdline[:strings.Index(rec.Cmdline, " ")] + " console=ttyS0 nokaslr panic=0 lab.entry=default kernsweep.own " + rec.Nonce; !rec.Proven || rec.Cmdline != want || !strings.HasPrefix(want, "BOOT_IMAGE=/kernsweep-") {
				t.Errorf("boot %d: command line %q; want %q", i, rec.Cmdline, want)
			}
		}
		if i%len(kernels) == 0 && err == nil {
			continue // the next boot is asked of the kernel under test
		}
		powerOn(t, m, tg)
		state, err := shell(t.Context(), tg.Held, "uname -r; grep -o lab.entry=default /proc/cmdline; grep -c next_entry=. /boot/grub/grubenv; ls /boot")
		if err != nil || !strings.HasPrefix(state, "6.1.") || !strings.Contains(state, "lab.entry=default\n0\n") {
			t.Errorf("boot %d: the default did not come back: %v %s", i, err, state)
		}
	}
	grubMachineLeft(t, tg)
	grubGuestRefuses(t, tg, good)
}

// grubMachineLeft looks at what a person finds on the machine.
func grubMachineLeft(t *testing.T, tg *targets.Target) {
	custom, err := shell(t.Context(), tg.Held, "cat /boot/grub/custom.cfg")
	if err != nil || !strings.HasPrefix(custom, humanEntry+entriesBegin) || strings.Count(custom, "menuentry") != 2 ||
		!strings.Contains(custom, "search --no-floppy --fs-uuid --set=root ") {
		t.Errorf("%v\n%s", err, custom)
	}
	check := exec.Command(targetstest.Tool(t, "grub-script-check"))
	check.Stdin = strings.NewReader(custom)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("GRUB cannot read our entry: %v %s\n%s", err, out, custom)
	}
	// Power may fail now: the block is whole and in the same place.
	env, err := shell(t.Context(), tg.Held, "wc -c </boot/grub/grubenv; grep saved_entry /boot/grub/grubenv")
	if err != nil || strings.TrimSpace(env) != "1024\nsaved_entry=default" {
		t.Errorf("%v %q", err, env)
	}
}

// grubGuestRefuses spoils the machine in ways that only a real one has.
func grubGuestRefuses(t *testing.T, tg *targets.Target, k targets.Kernel) {
	k.Image.Kernel = fileOf(t, "other", strings.Repeat("x", 1<<20))
	for _, c := range []struct{ name, spoil, repair, want string }{
		{"full", "rm -f /boot/kernsweep-*; fallocate -l $(($(df -k /boot | awk 'END { print $4 }') - 3000))K /boot/human", "rm /boot/human", "/boot has "},
		{"read-only", "mount -o remount,ro /boot", "mount -o remount,rw /boot", "/boot is mounted read-only (ext4)"},
		{"damaged markers", "sed -i '/END kernsweep/d' /boot/grub/custom.cfg", "rm /boot/grub/custom.cfg", "are damaged"},
		{"stuck", "n=$(sed 's/.*kernsweep.nonce=//' /proc/cmdline); mkdir -p /f; cat /proc/cmdline >/f/c; echo ' kernsweep.nonce=00ff' >>/f/c; tr -d '\n' </f/c >/f/d; mount -o bind /f/d /proc/cmdline; " +
			"sed -i 's/^next_entry=.*/next_entry=kernsweep-00ff/; s/#\\{24\\}$//' /boot/grub/grubenv; truncate -s 1024 /boot/grub/grubenv; tr '\\0' '#' </boot/grub/grubenv >/f/e; cat /f/e >/boot/grub/grubenv",
			"umount /proc/cmdline", "did not clear next_entry"},
	} {
		if _, err := shell(t.Context(), tg.Held, c.spoil); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		conn := tg.Held
		g := &Grub{Command: "touch /run/rebooted"}
		k.Nonce = "kernsweep.nonce=0011"
		err := g.Boot(t.Context(), tg, k)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
		t.Logf("%s: %v", c.name, err)
		if said, err := shell(t.Context(), conn, c.repair+"; ls /run/rebooted 2>/dev/null; grep next_entry=. /boot/grub/grubenv; true"); err != nil || said != "" {
			t.Errorf("%s: %v %s", c.name, err, said)
		}
	}
}

// TestGrubEFI boots by GRUB for EFI, with its environment block and the kernels
// on the FAT partition that the firmware reads.
func TestGrubEFI(t *testing.T) {
	t.Parallel()
	disk := partitioned(t, 120, 0xef, nil)
	run(t, targetstest.Tool(t, "mkfs.vfat", "/usr/sbin/mkfs.vfat"), "-F", "32", "--offset", "2048", disk, "121856")
	k := labKernel(t, "6.1", "")
	args := guestArgs(t, k, "", diskModules(t, "6.1", "virtio_blk", "fat", "nls_cp437", "nls_ascii", "vfat"))
	dir := t.TempDir()
	efi, env := filepath.Join(dir, "grub.efi"), filepath.Join(dir, "grubenv")
	run(t, targetstest.Tool(t, "grub-mkimage"), "-O", "x86_64-efi", "-p", "(hd0,msdos1)/grub", "-o", efi,
		"part_msdos", "fat", "normal", "linux", "configfile", "loadenv", "test", "echo", "serial", "terminal", "search", "search_fs_uuid")
	run(t, targetstest.Tool(t, "grub-editenv"), env, "create")
	cfg := "serial --unit=0 --speed=115200\nterminal_output serial\n" + strings.ReplaceAll(debianHeader, "ext2", "fat")
	cfg = cfg[:strings.Index(cfg, "menuentry")] + "set timeout=0\nmenuentry default { linux /vmlinuz " + kernelLine + " lab.entry=default; initrd /initrd; }\n" + debianCustom
	image := disk + "@@1M"
	targetstest.Tool(t, "mcopy")
	run(t, "mmd", "-i", image, "::EFI", "::EFI/BOOT", "::grub")
	for from, to := range map[string]string{efi: "EFI/BOOT/BOOTX64.EFI", env: "grub/grubenv", fileOf(t, "cfg", cfg): "grub/grub.cfg", k.Image.Kernel: "vmlinuz", args[3]: "initrd"} {
		run(t, "mcopy", "-i", image, from, "::"+to)
	}
	vars := filepath.Join(dir, "vars.fd")
	run(t, "cp", "/usr/share/OVMF/OVMF_VARS_4M.fd", vars)
	m, tg := guest(t, "-drive", "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd", "-drive", "if=pflash,format=raw,file="+vars,
		"-drive", "if=none,id=d0,format=raw,cache=writethrough,file="+disk, "-device", "virtio-blk-pci,drive=d0,bootindex=0")
	tg.Boot = new(Grub)
	tg.Timeout.Silence = 90 * time.Second // firmware and GRUB say little
	powerOn(t, m, tg)
	oneShots(t, m, tg, func() {
		if _, err := shell(t.Context(), tg.Held, "mkdir -p /boot && mount -t vfat /dev/vda1 /boot"); err != nil {
			t.Fatal(err)
		}
	}, "")
}
