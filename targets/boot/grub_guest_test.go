package boot

import (
	"os"
	"os/exec"
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
	tg.Timeout.Silence = 30 * time.Second // GRUB loads without a word
	return m, tg, g
}

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
	// What a person finds on the machine.
	custom, err := shell(t.Context(), tg.Held, "cat /boot/grub/custom.cfg")
	if err != nil || strings.Count(custom, "menuentry") != 1 || !strings.Contains(custom, "search --no-floppy --fs-uuid --set=root ") {
		t.Errorf("%v\n%s", err, custom)
	}
	check := exec.Command(targetstest.Tool(t, "grub-script-check"))
	check.Stdin = strings.NewReader(custom)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("GRUB cannot read our entry: %v %s\n%s", err, out, custom)
	}
}
