package targets

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// surveyFrom reads sections as if two scripts had printed them.
func surveyFrom(probe, more map[string]string) *Survey {
	ev := &Evidence{Files: map[string][]byte{}, Missing: map[string]string{}}
	for k, v := range probe {
		ev.Files[k] = []byte(v)
	}
	s := &Survey{}
	r := surveyReader{Evidence: ev, more: map[string][]byte{}, s: s}
	for k, v := range more {
		r.more[k] = []byte(v)
	}
	ev.Fill(&s.Running)
	r.machine()
	r.cpus()
	r.places()
	r.clock(time.Unix(1_800_000_000, 0))
	r.system()
	r.loaders()
	r.methods()
	return s
}

func elf32(data, machine byte, flags uint32) string {
	h := make([]byte, 64)
	copy(h, "\x7fELF\x01")
	h[5] = data
	if data == 2 {
		h[19] = machine
	} else {
		h[18] = machine
		h[36], h[37] = byte(flags), byte(flags>>8)
	}
	return string(h)
}

// TestSurveyBootMethods: the evidence decides which methods are proposed, and what
// a person must do first.
func TestSurveyBootMethods(t *testing.T) {
	const root = "uid=0\n"
	loaderInfo := "06000000" + fmt.Sprintf("%x", "s\x00y\x00s\x00t\x00e\x00m\x00d\x00-\x00b\x00o\x00o\x00t\x00 \x002\x005\x002\x00") + "0000"
	amd64 := "\x7fELF\x02\x01" + strings.Repeat("\x00", 12) + "\x3e" + strings.Repeat("\x00", 45)
	for name, c := range map[string]struct {
		probe, more map[string]string
		loader      string
		methods     []string // with "?" when something must be done first
	}{
		"CFE": {nil, map[string]string{"who": root, "mtd": "dev:    size   erasesize  name\nmtd0: 00040000 00010000 \"cfe\"\nmtd1: 00010000 00010000 \"linux\"\n"}, "CFE", []string{"cfe?", "none"}},
		"RedBoot": {nil, map[string]string{"who": root, "mtd": "mtd0: 00030000 00010000 \"RedBoot\"\nmtd5: 0000f000 00010000 \"FIS directory\"\n"},
			"RedBoot", []string{"redboot?", "none"}},
		"U-Boot with its tools": {nil, map[string]string{"who": root, "mtd": "mtd0: 00030000 00010000 \"u-boot-env\"\n", "uboot": "fw_env.config=yes\nfw_setenv=/usr/sbin/fw_setenv\n"},
			"U-Boot", []string{"uboot?", "uboot-env?", "none"}},
		"OpenWrt": {nil, map[string]string{"who": root, "mtd": "mtd0: 00030000 00010000 \"u-boot\"\n", "tools": "sysupgrade=/sbin/sysupgrade\nreboot=/sbin/reboot\n", "openwrt_release": "DISTRIB_ID='OpenWrt'\n"},
			"U-Boot", []string{"uboot?", "sysupgrade?", "ssh-reboot?", "none"}},
		"GRUB, no kexec": {nil, map[string]string{"who": root, "boot": "/boot/vmlinuz\n/boot/grub/grub.cfg\n/boot/grub/grubenv\n"}, "GRUB", []string{"grub", "none"}},
		"GRUB without grubenv, kexec": {map[string]string{"elf": amd64}, map[string]string{"who": root, "boot": "/boot/grub2/grub.cfg\n", "kexec": "loaded=0\ndisabled=0\n"},
			"GRUB", []string{"kexec", "grub?", "none"}},
		"locked down": {map[string]string{"elf": amd64}, map[string]string{"who": root, "kexec": "loaded=0\nlockdown=none [integrity] confidentiality\n"}, "", []string{"kexec?", "none"}},
		"systemd-boot": {nil, map[string]string{"who": root, "efi": "efi=yes\nLoaderInfo=" + loaderInfo + "\n"}, "systemd-boot",
			[]string{"systemd-boot", "none"}},
		"EXTLINUX":          {nil, map[string]string{"who": root, "boot": "/boot/extlinux/ldlinux.sys\n/boot/extlinux/extlinux.conf\n"}, "EXTLINUX", []string{"extlinux?", "none"}},
		"U-Boot's extlinux": {nil, map[string]string{"who": root, "boot": "/boot/extlinux/extlinux.conf\n"}, "U-Boot", []string{"uboot?", "none"}},
		"kexec on MIPS without its program": {map[string]string{"elf": elf32(1, 8, 0)}, map[string]string{"who": root, "kexec": "loaded=0\n"}, "",
			[]string{"kexec?", "none"}},
		"not root":  {map[string]string{"elf": amd64}, map[string]string{"who": "uid=1000\n", "kexec": "loaded=0\n", "boot": "/boot/grub/grub.cfg\n"}, "GRUB", []string{"none"}},
		"container": {map[string]string{"elf": amd64}, map[string]string{"who": "uid=0\ncapbnd=00000000a80425fb\n", "kexec": "loaded=0\n"}, "", []string{"none"}},
		"nothing":   {nil, nil, "", []string{"none"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := surveyFrom(c.probe, c.more)
			var got []string
			for _, m := range s.Methods {
				n := m.Name
				if m.Fill != "" {
					n += "?"
				}
				got = append(got, n)
			}
			if !slices.Equal(got, c.methods) || s.Loader().Value != c.loader {
				t.Errorf("methods %q, want %q; loader %q, want %q", got, c.methods, s.Loader().Value, c.loader)
			}
		})
	}
}

// TestSurveyFacts: what a machine says, and what it does not say.
func TestSurveyFacts(t *testing.T) {
	s := surveyFrom(map[string]string{
		"elf": elf32(2, 8, 0), "uname": "Linux\nap\n5.4.1\n#1\nmips\n", "cpuinfo": "processor\t: 0\ncpu model\t\t: MIPS 24Kc V7.4\n",
		"mounts": "overlayfs:/overlay / overlay rw,lowerdir=/,upperdir=/overlay/upper 0 0\n/dev/mtdblock4 /overlay jffs2 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n",
	}, map[string]string{
		"clock":      "1799996400\n",
		"daemons":    "clock ntpd\nwatchdog procd\n",
		"watchdog":   "device=/dev/watchdog\nidentity=Atheros wdt\n",
		"topology":   "0 0\n0 0\n0 1\n0 1\n1 0\n1 0\n1 1\n1 1\n",
		"nodes":      "node0\nnode1\n",
		"busybox":    "BusyBox v1.30.1 () built-in shell (ash)\n",
		"places":     "place yes yes /tmp\ndf Filesystem 1024-blocks Used Available Capacity Mounted on\ndf tmpfs 9000 0 9000 0% /tmp\nplace yes yes /root\nplace yes no /opt\nplace no no /mnt\n",
		"versions":   "/etc/debian_version=4.0\n",
		"survey_end": "",
	})
	want := map[string]string{
		"architecture": "mips", "byte order": "big-endian", "float": "soft", "clock": "kept by ntpd, WRONG: 1h0m0s behind the controller's",
		"watchdog": "/dev/watchdog, fed by procd (Atheros wdt)", "BusyBox": "v1.30.1", "distribution": "Debian 4.0",
		"CPUs":   "1: sockets 2, cores 4, threads 8, 2 NUMA nodes",
		"places": "/tmp: 8 MiB free, gone after a reboot (tmpfs at /tmp); /root: room unknown, survives a reboot (overlay at /, its upper folder on jffs2)",
		"memory": "n/a (/proc/meminfo is not readable)", "boot loader": "n/a (no known name in /proc/mtd, no known file in /boot, no EFI, no word of it in the device tree)",
	}
	for _, f := range s.Facts() {
		if w, ok := want[f.Name]; ok && f.String() != w {
			t.Errorf("%s: %q, want %q", f.Name, f, w)
		}
	}
	for flags, w := range map[uint32]string{0x400: "hard", 0x200: "soft"} {
		arm := surveyFrom(map[string]string{"elf": elf32(1, 40, flags), "uname": "Linux\na\n4\n#1\narmv5tel\n", "cpuinfo": "Features\t: swp half\n"}, nil)
		if arm.Float.Value != w {
			t.Errorf("ARM with flags %x: %q", flags, arm.Float)
		}
	}
}
