package boot

import (
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// efiText is a loader's variable as efivarfs shows it: strings with final zeros.
func efiText(attributes string, texts ...string) string {
	var b strings.Builder
	b.WriteString(attributes)
	for _, s := range texts {
		for _, u := range append(utf16.Encode([]rune(s)), 0) {
			fmt.Fprintf(&b, "%02x%02x", byte(u), u>>8)
		}
	}
	return b.String()
}

// efiSystem is what a machine with systemd-boot says, with changes: "key words"
// lines that replace those with the same beginning, "-key" that remove them.
func efiSystem(changes ...string) *sdSystem {
	lines := []string{
		"uid 0", "cmdline initrd=\\initrd root=/dev/vda2 ro quiet", "efi yes",
		"var LoaderInfo " + efiText("06000000", "systemd-boot 252.39-1~deb12u2"),
		"var LoaderFeatures 060000007f00000000000000",
		"var LoaderEntries " + efiText("06000000", "debian-6.1.conf", "debian-6.0.conf", "auto-reboot-to-firmware-setup"),
		"var LoaderEntrySelected " + efiText("06000000", "debian-6.1.conf"),
		"var SecureBoot 0600000000", "var BootCurrent 060000000300", "var BootOrder 0700000003000000",
		"esp /efi", "xboot /efi", "loader /efi", "entry /efi debian-6.1.conf", "entry /efi debian-6.0.conf",
		"conf /efi #console-mode keep", "conf /efi timeout 3", "conf /efi default debian-*.conf",
		"mount /dev/vda2 / ext4 rw 0 0", "mount efivarfs " + efivars + " efivarfs rw,nosuid 0 0", "mount /dev/vda1 /efi vfat rw 0 0",
	}
	for _, c := range changes {
		remove := strings.HasPrefix(c, "-")
		f := strings.Fields(strings.TrimPrefix(c, "-"))
		key := f[0]
		if len(f) > 1 && key != "uid" && key != "esp" && key != "xboot" {
			key += " " + f[1]
		}
		if len(f) > 2 && (f[0] == "conf" || f[0] == "mount") {
			key += " " + f[2]
		}
		kept := lines[:0:0]
		for _, l := range lines {
			if !strings.HasPrefix(l+" ", key+" ") {
				kept = append(kept, l)
			}
		}
		if lines = kept; !remove {
			lines = append(lines, c)
		}
	}
	return readSDSystem(strings.Join(lines, "\n"))
}

// refuses checks an error's words; "" wants none.
func refuses(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestSDBootRefusesWhatHasNoEffect(t *testing.T) {
	vars := "mount efivarfs " + efivars + " "
	for want, changes := range map[string][]string{
		"":                                nil,
		"only root":                       {"uid 1000"},
		"was not started by EFI":          {"-efi"},
		"CONFIG_EFIVAR_FS":                {"-" + vars + "efivarfs"},
		"is mounted read-only: mount -o":  {"-" + vars + "efivarfs", "mount efivarfs " + efivars + " efivarfs ro,nosuid 0 0"},
		"there is no variable LoaderInfo": {"-var LoaderInfo"},
		`"GRUB 2.12" started this`:        {"var LoaderInfo " + efiText("06000000", "GRUB 2.12")},
		"cannot start an entry once":      {"var LoaderFeatures 060000000300000000000000"},
		"wait for a key for ever":         {"conf /efi timeout menu-force"},
	} {
		refuses(t, fmt.Sprint(changes), efiSystem(changes...).check(), want)
	}
	old := []string{"-var LoaderFeatures", "var LoaderInfo " + efiText("06000000", "gummiboot 48")}
	refuses(t, "gummiboot", efiSystem(old...).check(), "")
}

func TestSDBootNeverBecomesTheDefault(t *testing.T) {
	id := "kernsweep-0123456789ab.conf"
	for want, changes := range map[string][]string{
		"":                 nil,
		"no fixed default": {"-conf /efi default"},
		"run once on the target: bootctl set-default \"debian-6.1.conf\"":       {"-conf /efi default"},
		`the default "*" of /efi/loader/loader.conf would also mean our`:        {"conf /efi default *"},
		`the default "arch*" of /efi/loader/loader.conf is none of systemd-bo`:  {"conf /efi default arch*"},
		`the default "KERN*" of the variable LoaderEntryDefault would also mea`: {"var LoaderEntryDefault " + efiText("07000000", "KERN*")},
		`no fixed default, so`: {"conf /efi default @saved"},
	} {
		refuses(t, fmt.Sprint(changes), efiSystem(changes...).keepsDefault(id), want)
	}
	for _, changes := range [][]string{
		{"-conf /efi default", "var LoaderEntryDefault " + efiText("07000000", "debian-6.0.conf")},
		{"conf /efi default @saved", "var LoaderEntryLastBooted " + efiText("07000000", "debian-6.1.conf")},
		{"conf /efi default old", "-var LoaderEntries"},
	} {
		refuses(t, fmt.Sprint(changes), efiSystem(changes...).keepsDefault(id), "")
	}
}

func TestSDBootPlace(t *testing.T) {
	for _, c := range []struct {
		dir       string
		changes   []string
		want, err string
	}{
		{"", nil, "/efi", ""},
		{"", []string{"xboot /boot", "loader /boot", "mount /dev/vda3 /boot vfat rw 0 0"}, "/boot", ""},
		{"", []string{"-esp", "-xboot"}, "/efi", ""},
		{"", []string{"-esp", "-xboot", "-loader /efi", "loader /boot"}, "", "mount the ESP"}, // GRUB's own
		{"", []string{"-esp", "-xboot", "-mount /dev/vda1 /efi"}, "", "mount the ESP"},
		{"/mnt", nil, "", `"/mnt" is no mount point`},
		{"/mnt", []string{"mount /dev/vda4 /mnt ext4 rw 0 0"}, "", `"/mnt" is ext4, and systemd-boot reads FAT`},
		{"/mnt", []string{"mount /dev/vda4 /mnt vfat rw 0 0"}, "/mnt", ""},
		{"", []string{"mount systemd-1 /efi autofs rw 0 0", "mount /dev/vda1 /efi vfat rw 0 0"}, "/efi", ""},
	} {
		got, err := efiSystem(c.changes...).place(c.dir)
		refuses(t, fmt.Sprint(c), err, c.err)
		if got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}

// Old versions call an entry by its file's name without ".conf".
func TestSDBootID(t *testing.T) {
	if id := efiSystem().id("kernsweep-0.conf"); id != "kernsweep-0.conf" {
		t.Error(id)
	}
	if id := efiSystem("var LoaderEntries " + efiText("06000000", "debian-6.1", "debian-6.0")).id("kernsweep-0.conf"); id != "kernsweep-0" {
		t.Error(id)
	}
	if id := efiSystem("-var LoaderEntries").id("kernsweep-0.conf"); id != "kernsweep-0.conf" {
		t.Error(id)
	}
}

func TestSDBootEntry(t *testing.T) {
	in := installed{Kernel: "/efi/kernsweep/kernsweep-0123456789ab.k", Initrd: "/efi/kernsweep/kernsweep-ba9876543210.i"}
	got := entryText("/efi", in, targets.Kernel{Name: "bfs"}, "root=/dev/vda2 kernsweep.own")
	want := `title kernsweep: bfs
linux /kernsweep/kernsweep-0123456789ab.k
initrd /kernsweep/kernsweep-ba9876543210.i
options root=/dev/vda2 kernsweep.own
`
	if got != want {
		t.Errorf("%s", got)
	}
}

func TestSDBootFits(t *testing.T) {
	b := &SDBoot{}
	k := labKernel(t, "6.1", "")
	refuses(t, "plain", b.fits(efiSystem(), k), "")
	if len(b.notes) != 0 {
		t.Errorf("%q", b.notes)
	}
	refuses(t, "other entry first", b.fits(efiSystem("var BootCurrent 060000000400"), k), "")
	if len(b.notes) != 1 || !strings.Contains(b.notes[0], "entry 0004 runs now, but 0003 is the first") {
		t.Errorf("%q", b.notes)
	}
	elf := k
	elf.Image.Kernel = labFile(t, "img/vmlinuz-mipsel-6.1")
	refuses(t, "ELF", b.fits(efiSystem(), elf), "CONFIG_EFI_STUB")
	unsigned := elf
	unsigned.Image.Kernel = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi"
	refuses(t, "Secure Boot", b.fits(efiSystem("var SecureBoot 0600000001"), unsigned), "is not signed and Secure Boot is on")
}

// The variable's bytes pass every shell whole.
func TestOneShotBytesInShells(t *testing.T) {
	b := oneShotBytes("kernsweep-0123456789ab.conf")
	var escaped strings.Builder
	for _, c := range b {
		fmt.Fprintf(&escaped, `\%03o`, c)
	}
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"busybox", "ash"}} {
		targetstest.Tool(t, sh[0])
		file := filepath.Join(t.TempDir(), "var")
		if got := run(t, append(sh, "-c", oneShotScript, "sh", file, escaped.String())...); got != hex.EncodeToString(b) {
			t.Errorf("%s: %q", sh, got)
		}
	}
}

// What the firmware does with it is read back.
func TestSetOneShot(t *testing.T) {
	if got := hex.EncodeToString(oneShotBytes("a.conf")); got != "0700000061002e0063006f006e0066000000" {
		t.Error(got)
	}
	answer := func(out string, e targets.Exit, complaint string) says {
		return func(c targets.Cmd) (string, targets.Exit, error) {
			if c.Stderr != nil {
				fmt.Fprint(c.Stderr, complaint)
			}
			return out, e, nil
		}
	}
	ok := hex.EncodeToString(oneShotBytes("a.conf"))
	refuses(t, "works", setOneShot(context.Background(), answer(ok, targets.Exit{}, ""), "a.conf"), "")
	refuses(t, "full", setOneShot(context.Background(), answer("", targets.Exit{Code: 1}, "sh: write error: No space left on device"), "a.conf"), "the firmware has no room")
	refuses(t, "lost", setOneShot(context.Background(), answer("07000000", targets.Exit{}, ""), "a.conf"), "does the firmware keep variables")
	refuses(t, "denied", setOneShot(context.Background(), answer("", targets.Exit{Code: 1}, "Operation not permitted"), "a.conf"), "setting the variable LoaderEntryOneShot")
}
