package boot

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/targets"
)

func TestCmdlineOfTheRunningKernel(t *testing.T) {
	k := targets.Kernel{Cmdline: "new=1", Nonce: "kernsweep.nonce=22", Image: targets.Image{Cmdline: "panic=5"}}
	const own = "kernsweep.own panic=5 new=1 kernsweep.nonce=22"
	for _, c := range []struct{ mode, running, want string }{
		{"", "BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet console=ttyS0,115200\n", "root=UUID=1 ro quiet console=ttyS0,115200 " + own},
		{"reuse", `root=/dev/sda1 dyndbg="file a.c +p; x" ro`, `root=/dev/sda1 dyndbg="file a.c +p; x" ro ` + own},
		{"", "root=/dev/sda1 kernsweep.own old=1 kernsweep.nonce=11", "root=/dev/sda1 " + own},
		{"", "root=/dev/sda1 old=1 kernsweep.nonce=11 ro", "root=/dev/sda1 old=1 ro " + own},
		{"", `initrd=\EFI\debian\initrd.img root=/dev/sda1 -- single`, "root=/dev/sda1 " + own + " -- single"},
		{"", "root=/dev/sda1 kernsweep.own old=1 kernsweep.nonce=11 -- single", "root=/dev/sda1 " + own + " -- single"},
		{"", "root=/dev/sda1 --", "root=/dev/sda1 " + own},
		{"", "/boot/vmlinuz root=/dev/sda1", "root=/dev/sda1 " + own},
		{"root", "BOOT_IMAGE=/x root=/dev/sda1 rootflags=subvol=@ ro quiet splash mitigations=off console=tty0 console=ttyS0 rd.lvm.lv=vg/root isolcpus=1",
			"root=/dev/sda1 rootflags=subvol=@ ro console=tty0 console=ttyS0 rd.lvm.lv=vg/root " + own},
		{"own", "root=/dev/sda1 ro -- single", own},
		{"", "", own},
	} {
		got, err := Cmdline{c.mode}.line(c.running, k)
		if err != nil || got != c.want {
			t.Errorf("%s of %q:\n%s, %v; want\n%s", c.mode, c.running, got, err, c.want)
		}
		// The next boot finds the same base.
		if again, err := (Cmdline{c.mode}).line(got, k); err != nil || again != got {
			t.Errorf("from %q: %q, %v", got, again, err)
		}
	}
	if _, err := (Cmdline{}).line(strings.Repeat("x", 2040), k); err == nil || !strings.Contains(err.Error(), "and a kernel takes 2047") {
		t.Error(err)
	}
}

func FuzzCmdline(f *testing.F) {
	f.Add(`root=/dev/sda1 a="b c" kernsweep.own x -- y`)
	f.Add(`"0`)
	f.Fuzz(func(t *testing.T, running string) {
		k := targets.Kernel{Nonce: "kernsweep.nonce=22"}
		got, err := Cmdline{}.line(running, k)
		if err != nil {
			return
		}
		if !strings.Contains(got, "kernsweep.own kernsweep.nonce=22") {
			t.Fatalf("%q", got)
		}
		if again, err := (Cmdline{}).line(got, k); err != nil || again != got {
			t.Fatalf("%q becomes %q, %v", got, again, err)
		}
	})
}

// pe makes an EFI program's header.
func pe(machine uint16, signature uint32) []byte {
	b := make([]byte, 0x400)
	copy(b, "MZ")
	binary.LittleEndian.PutUint32(b[0x3c:], 0x80)
	copy(b[0x80:], "PE\x00\x00")
	binary.LittleEndian.PutUint16(b[0x84:], machine)
	opt := b[0x98:]
	binary.LittleEndian.PutUint16(opt, 0x20b)
	binary.LittleEndian.PutUint32(opt[108:], 6)
	binary.LittleEndian.PutUint32(opt[112+36:], signature)
	return b
}

func TestImageHeader(t *testing.T) {
	patch := func(b []byte, off int, s string) []byte { copy(b[off:], s); return b }
	for _, c := range []struct {
		name string
		b    []byte
		want imageFacts
	}{
		{"x86 64 bit", patch(patch(pe(0x8664, 0), 0x202, "HdrS\x0f\x02"), 0x236, "\x7f"), imageFacts{"amd64", true, false}},
		{"x86 32 bit", patch(make([]byte, 0x400), 0x202, "HdrS\x0f\x02"), imageFacts{"386", false, false}},
		{"signed", patch(patch(pe(0x8664, 1800), 0x202, "HdrS\x0f\x02"), 0x236, "\x01"), imageFacts{"amd64", true, true}},
		{"arm64", patch(pe(0xaa64, 0), 56, "ARM\x64"), imageFacts{"arm64", true, false}},
		{"arm64, compressed by itself", pe(0xaa64, 9), imageFacts{"arm64", true, true}},
		{"RISC-V", patch(make([]byte, 64), 56, "RSC\x05"), imageFacts{"riscv64", false, false}},
		{"MIPS ELF", []byte("\x7fELF\x01\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\x08\x00" + strings.Repeat("\x00", 44)), imageFacts{"mipsle", false, false}},
		{"gzip", []byte("\x1f\x8b\x08\x00"), imageFacts{}},
		{"short", []byte("MZ"), imageFacts{}},
	} {
		if got := imageHeader(c.b); got != c.want {
			t.Errorf("%s: %+v; want %+v", c.name, got, c.want)
		}
	}
	for _, v := range []string{"6.1", "6.12"} {
		if got, err := readImage(labFile(t, "img/vmlinuz-amd64-"+v)); err != nil || got.arch != "amd64" || !got.pe {
			t.Errorf("%s: %+v, %v", v, got, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readImage(empty); err == nil {
		t.Error("an empty image passes")
	}
}

func FuzzImageHeader(f *testing.F) {
	f.Add(pe(0x8664, 1))
	f.Add([]byte("\x7fELF\x01\x01\x01"))
	f.Fuzz(func(_ *testing.T, b []byte) { imageHeader(b) })
}
