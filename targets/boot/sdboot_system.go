package boot

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"kernsweep/targets"
)

const (
	efivars    = "/sys/firmware/efi/efivars"
	loaderGUID = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f" // systemd.io/BOOT_LOADER_INTERFACE
	globalGUID = "8be4df61-93ca-11d2-aa0d-00e098032b8c" // UEFI specification, 3.3
)

// sdSystem is what the running system says before a one-shot.
type sdSystem struct {
	uid, cmdline string
	efi          bool
	vars         map[string][]byte // the loader's variables, without attributes
	secure       bool
	current      int // number of the firmware's entry that runs now, of the first in its order; -1 unknown
	first        int
	esp, xboot   string              // by bootctl; "" = it does not say
	loader       map[string]bool     // folders with a folder loader
	entries      map[string][]string // files in loader/entries
	conf         map[string]string   // loader/loader.conf
	mounts       mounts
}

// Looking into a folder makes systemd's automount mount it.
const sdScript = `echo "uid $(id -u)"
echo "cmdline $(cat /proc/cmdline)"
[ -d /sys/firmware/efi ] && echo "efi yes"
v=` + efivars + `
if [ -d $v ]; then
	grep -q " $v efivarfs " /proc/mounts || mount -t efivarfs efivarfs $v 2>/dev/null
	hex() { { od -A n -v -t x1 "$1" || hexdump -v -e '1/1 "%02x"' "$1"; } 2>/dev/null | tr -d ' \n'; }
	for n in LoaderInfo LoaderFeatures LoaderEntries LoaderEntrySelected LoaderEntryDefault LoaderEntryLastBooted; do
		[ -f $v/$n-` + loaderGUID + ` ] && echo "var $n $(hex $v/$n-` + loaderGUID + `)"
	done
	for n in SecureBoot BootCurrent BootOrder; do
		[ -f $v/$n-` + globalGUID + ` ] && echo "var $n $(hex $v/$n-` + globalGUID + `)"
	done
fi
esp=$(bootctl -p 2>/dev/null) && echo "esp $esp"
xboot=$(bootctl -x 2>/dev/null) && echo "xboot $xboot"
for d in "$1" "$xboot" "$esp" /efi /boot /boot/efi; do
	[ -n "$d" ] && [ -d "$d/loader" ] || continue
	echo "loader $d"
	for f in "$d"/loader/entries/*.conf; do [ -f "$f" ] && echo "entry $d ${f##*/}"; done
	[ -f "$d/loader/loader.conf" ] && while read -r l; do echo "conf $d $l"; done <"$d/loader/loader.conf"
done
while read -r l; do echo "mount $l"; done </proc/mounts
true`

// surveySDBoot asks the running system, and refuses one that systemd-boot did
// not start or whose variables cannot be set.
func surveySDBoot(ctx context.Context, conn targets.Conn, dir string) (*sdSystem, error) {
	said, err := shell(ctx, conn, sdScript, dir)
	if err != nil {
		return nil, err
	}
	sys := readSDSystem(said)
	return sys, sys.check()
}

func readSDSystem(said string) *sdSystem {
	sys := &sdSystem{current: -1, first: -1, vars: map[string][]byte{}, loader: map[string]bool{}, entries: map[string][]string{}, conf: map[string]string{}}
	var table strings.Builder
	for line := range strings.Lines(said) {
		key, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, rest, _ := strings.Cut(v, " ")
		switch key {
		case "uid":
			sys.uid = v
		case "cmdline":
			sys.cmdline = v
		case "efi":
			sys.efi = true
		case "esp":
			sys.esp = v
		case "xboot":
			sys.xboot = v
		case "loader":
			sys.loader[v] = true
		case "entry":
			sys.entries[name] = append(sys.entries[name], rest)
		case "conf":
			sys.conf[name] += rest + "\n"
		case "mount":
			table.WriteString(v + "\n")
		case "var":
			if b, err := hex.DecodeString(rest); err == nil && len(b) >= 4 {
				sys.vars[name] = b[4:] // behind the attributes
			}
		}
	}
	sys.mounts = mountTable(table.String())
	if b := sys.vars["SecureBoot"]; len(b) == 1 {
		sys.secure = b[0] == 1
	}
	if b := sys.vars["BootCurrent"]; len(b) == 2 {
		sys.current = int(binary.LittleEndian.Uint16(b))
	}
	if b := sys.vars["BootOrder"]; len(b) >= 2 {
		sys.first = int(binary.LittleEndian.Uint16(b))
	}
	return sys
}

// oneShotFeature is EFI_LOADER_FEATURE_ENTRY_ONESHOT of LoaderFeatures.
const oneShotFeature = 1 << 3

// check refuses a system on which a one-shot would have no effect.
func (s *sdSystem) check() error {
	if s.uid != "0" {
		return fmt.Errorf("the user on the target has the id %s, and only root may set an EFI variable and write to the ESP", s.uid)
	}
	vars := s.mounts.of(efivars)
	info := s.text("LoaderInfo")
	switch {
	case !s.efi:
		return errors.New("the target was not started by EFI (no /sys/firmware/efi): see grub or extlinux")
	case vars.fstype != "efivarfs":
		return fmt.Errorf("no efivarfs at %s and it cannot be mounted: the kernel needs CONFIG_EFIVAR_FS (modprobe efivarfs)", efivars)
	case vars.readOnly():
		return fmt.Errorf("%s is mounted read-only: mount -o remount,rw %s", efivars, efivars)
	case info == "":
		return errors.New("systemd-boot did not start this system (there is no variable LoaderInfo): a one-shot would have no effect; look for its entry in efibootmgr")
	case !strings.HasPrefix(info, "systemd-boot") && !strings.HasPrefix(info, "gummiboot"):
		return fmt.Errorf("%q started this system, not systemd-boot: a one-shot would have no effect", info)
	}
	if b := s.vars["LoaderFeatures"]; len(b) >= 8 && binary.LittleEndian.Uint64(b)&oneShotFeature == 0 {
		return fmt.Errorf("%s cannot start an entry once (LoaderFeatures %#x)", info, binary.LittleEndian.Uint64(b))
	}
	for dir, conf := range s.conf {
		if v := confValue(conf, "timeout"); v == "menu-force" {
			return fmt.Errorf("%s/loader/loader.conf says timeout menu-force: systemd-boot would wait for a key for ever", dir)
		}
	}
	return nil
}

// place is the folder whose partition takes entry and kernel.
func (s *sdSystem) place(dir string) (string, error) {
	for _, d := range []string{dir, s.xboot, s.esp, "/efi", "/boot", "/boot/efi"} {
		if d == "" || d != dir && d != s.xboot && d != s.esp && !s.loader[d] {
			continue
		}
		switch m := s.mounts.of(d); {
		case m.dir != d && dir != "":
			return "", fmt.Errorf("dir = %q is no mount point on the target", d)
		case m.dir != d:
			continue // Fedora's GRUB has a folder loader in its /boot too
		case m.fstype != "vfat" && m.fstype != "msdos":
			if dir == "" {
				continue
			}
			return "", fmt.Errorf("dir = %q is %s, and systemd-boot reads FAT", d, m.fstype)
		}
		return d, nil
	}
	return "", errors.New("no partition with a folder loader is mounted at /efi, /boot or /boot/efi: mount the ESP, or name its mount point with dir")
}

// id is what systemd-boot calls the entry in file: its name, which older
// versions cut before ".conf".
func (s *sdSystem) id(file string) string {
	known := s.list("LoaderEntries")
	short := false
	for _, files := range s.entries {
		for _, f := range files {
			if slices.Contains(known, strings.ToLower(f)) {
				return file
			}
			short = short || slices.Contains(known, strings.ToLower(strings.TrimSuffix(f, ".conf")))
		}
	}
	if short {
		return strings.TrimSuffix(file, ".conf")
	}
	return file
}

// keepsDefault refuses a system whose default is the newest entry by name, for
// that could be ours: then a power cycle would not bring the device back.
func (s *sdSystem) keepsDefault(id string) error {
	value, from := s.text("LoaderEntryDefault"), "the variable LoaderEntryDefault"
	if value == "" {
		for dir, conf := range s.conf {
			if v := confValue(conf, "default"); v != "" {
				value, from = v, dir+"/loader/loader.conf"
			}
		}
	}
	if value == "@saved" {
		value, from = s.text("LoaderEntryLastBooted"), "the variable LoaderEntryLastBooted"
	}
	pattern := strings.ToLower(value)
	set := "bootctl set-default ID"
	if now := s.text("LoaderEntrySelected"); now != "" {
		set = "bootctl set-default " + strconv.Quote(now)
	}
	if value == "" {
		return fmt.Errorf("systemd-boot has no fixed default, so its first entry is, and one of ours could become that: run once on the target: %s", set)
	}
	if ok, err := path.Match(pattern, id); err != nil || ok {
		return fmt.Errorf("the default %q of %s would also mean our entry %s: run once on the target: %s", value, from, id, set)
	}
	known := s.list("LoaderEntries")
	matches := func(e string) bool { ok, _ := path.Match(pattern, e); return ok }
	if len(known) > 0 && !slices.ContainsFunc(known, matches) {
		return fmt.Errorf("the default %q of %s is none of systemd-boot's entries, so its first entry is, and one of ours could become that: run once on the target: %s", value, from, set)
	}
	return nil
}

// confValue is the last value of a key in loader.conf.
func confValue(conf, key string) string {
	v := ""
	for line := range strings.Lines(conf) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == key {
			v = f[1]
		}
	}
	return v
}

// text is a variable that holds one string.
func (s *sdSystem) text(name string) string {
	if l := s.list(name); len(l) > 0 {
		return l[0]
	}
	return ""
}

// list is a variable of strings, each ended by a zero, in UTF-16.
func (s *sdSystem) list(name string) []string {
	b := s.vars[name]
	u := make([]uint16, len(b)/2)
	for i := range u {
		u[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return strings.FieldsFunc(string(utf16.Decode(u)), func(r rune) bool { return r == 0 })
}
