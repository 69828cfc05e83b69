package boot

import (
	"strings"
	"testing"

	"kernsweep/targets"
)

const biosSaid = `uid 0
cmdline BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro initrd=/boot/initrd
program yes
21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
dir /boot/extlinux
file /boot/extlinux/extlinux.conf
conf
DEFAULT lab
LABEL lab
  LINUX /boot/vmlinuz
`

func TestExtlinuxRefusesWhatHasNoEffect(t *testing.T) {
	found := "dir /boot/extlinux\nfile /boot/extlinux/extlinux.conf\n"
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"uid 0", "uid 1000", "only root"},
		{"program yes\n", "", "install its package"},
		{"program yes\n", "program yes\nefi yes\n", "is for BIOS"},
		{found, "uboot /boot/extlinux/extlinux.conf\n", "it is U-Boot that reads this file, and U-Boot has no one-shot for it"},
		{found, "bare /boot/extlinux\n", "neither extlinux.conf nor syslinux.cfg"},
		{found, "", "no ldlinux.sys with its configuration in /boot/extlinux, /boot/syslinux"},
	} {
		sys, err := readExtlinux(strings.Replace(biosSaid, c.old, c.new, 1), "")
		refuses(t, c.new, err, c.want)
		if err == nil && (sys.dir != "/boot/extlinux" || sys.at.dir != "/" || !strings.HasPrefix(sys.conf, "DEFAULT lab\n")) {
			t.Errorf("%+v", sys)
		}
	}
}

func TestExtlinuxBlock(t *testing.T) {
	in := installed{Kernel: "/boot/extlinux/kernsweep/kernsweep-0123456789ab.k", Initrd: "/boot/extlinux/kernsweep/kernsweep-ba9876543210.i"}
	for _, c := range []struct{ mountinfo, prefix string }{
		{"21 1 8:1 / / rw - ext4 /dev/sda1 rw", "/boot"},
		{"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 8:2 / /boot rw - ext4 /dev/sda2 rw", ""},
		{"22 21 8:2 /boot /boot rw - ext4 /dev/sda2 rw", "/boot"}, // a bind mount
		{"22 21 0:31 /@ / rw - btrfs /dev/sda2 rw,subvol=/@", "/boot"},
	} {
		sys := &extlinuxSystem{at: parseMounts(c.mountinfo).of("/boot/extlinux")}
		got := extlinuxBlock(sys, in, "bfs", "kernsweep-0123456789ab", "root=/dev/sda1 kernsweep.own")
		want := `LABEL kernsweep-0123456789ab
  MENU LABEL kernsweep: bfs
  LINUX ` + c.prefix + `/extlinux/kernsweep/kernsweep-0123456789ab.k
  INITRD ` + c.prefix + `/extlinux/kernsweep/kernsweep-ba9876543210.i
  APPEND root=/dev/sda1 kernsweep.own
`
		if got != want {
			t.Errorf("%s:\n%s", c.mountinfo, got)
		}
	}
}

func TestExtlinuxConf(t *testing.T) {
	const block = "LABEL kernsweep-0\n  LINUX /k\n"
	first, err := withBlock("DEFAULT lab\nLABEL lab\n  LINUX /v", block)
	want := "DEFAULT lab\nLABEL lab\n  LINUX /v\n" + blockBegin + "\n" + block + blockEnd + "\n"
	if err != nil || first != want {
		t.Errorf("%v:\n%s", err, first)
	}
	again, err := withBlock(first, strings.ReplaceAll(block, "-0", "-1"))
	if err != nil || again != strings.ReplaceAll(want, "-0", "-1") {
		t.Errorf("%v:\n%s", err, again)
	}
	if none, err := withBlock(again, ""); err != nil || none != "DEFAULT lab\nLABEL lab\n  LINUX /v\n" {
		t.Errorf("%v:\n%s", err, none)
	}
	if crlf, err := withBlock(strings.ReplaceAll(first, "\n", "\r\n"), ""); err != nil || strings.Contains(crlf, "kernsweep") {
		t.Errorf("%v:\n%s", err, crlf)
	}
	// Somebody cut our block by hand, or added lines behind it.
	if _, err := withBlock(strings.ReplaceAll(first, blockEnd+"\n", "LABEL other\n"), block); err == nil {
		t.Error("lines behind a block without an end were taken for ours")
	}
	behind, err := withBlock(first+"LABEL other\n  LINUX /o\n", block)
	if err != nil || !strings.Contains(behind, "LABEL other") || !strings.HasSuffix(behind, blockEnd+"\n") {
		t.Errorf("%v:\n%s", err, behind)
	}
}

func TestOneShotsNeedALink(t *testing.T) {
	for _, b := range []targets.Booter{&Extlinux{}, &SDBoot{}, &Sysupgrade{}} {
		refuses(t, "", b.Boot(t.Context(), &targets.Target{}, targets.Kernel{}), "no link to the running system")
		if tr := targets.TraitsOf(b); !tr.Running || !tr.Image {
			t.Errorf("%T: %+v", b, tr)
		}
	}
	refuses(t, "", (&Extlinux{Dir: "boot"}).Check(), "absolute path")
	refuses(t, "", (&SDBoot{Dir: "efi"}).Check(), "absolute path")
	refuses(t, "", (&SDBoot{oneShot: oneShot{Cmdline: Cmdline{Mode: "all"}}}).Check(), "cmdline")
}
