package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kernsweep/targets"
)

// extlinuxSystem is what the running system says before a one-shot.
type extlinuxSystem struct {
	uid, cmdline string
	efi, program bool
	uboot        string // an extlinux.conf without ldlinux.sys beside it
	dir          string // of ldlinux.sys
	file, conf   string // its configuration and that one's text
	at           mount  // that holds dir
}

const extlinuxScript = `echo "uid $(id -u)"
echo "cmdline $(cat /proc/cmdline)"
[ -d /sys/firmware/efi ] && echo "efi yes"
command -v extlinux >/dev/null && echo "program yes"
cat /proc/self/mountinfo
if [ -n "$1" ]; then set -- "$1"; else set -- /boot/extlinux /boot/syslinux /extlinux /syslinux /boot; fi
for d; do
	for f in extlinux.conf syslinux.cfg; do
		[ -f "$d/$f" ] || continue
		if [ -f "$d/ldlinux.sys" ]; then
			echo "dir $(cd "$d" && pwd -P)"
			c=$(readlink -f "$d/$f" 2>/dev/null)
			echo "file ${c:-$d/$f}"
			echo "conf"
			cat "$d/$f"
			exit 0
		fi
		echo "uboot $d/$f"
	done
	[ -f "$d/ldlinux.sys" ] && echo "bare $d"
done
true`

// surveyExtlinux asks the running system, and refuses one on which a one-shot
// would have no effect.
func surveyExtlinux(ctx context.Context, conn targets.Conn, dir string) (*extlinuxSystem, error) {
	said, err := shell(ctx, conn, extlinuxScript, dir)
	if err != nil {
		return nil, err
	}
	return readExtlinux(said, dir)
}

func readExtlinux(said, dir string) (*extlinuxSystem, error) {
	sys := &extlinuxSystem{}
	said, sys.conf, _ = strings.Cut(said, "\nconf\n")
	bare := ""
	for line := range strings.Lines(said) {
		key, v, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		switch key {
		case "uid":
			sys.uid = v
		case "cmdline":
			sys.cmdline = v
		case "efi":
			sys.efi = true
		case "program":
			sys.program = true
		case "uboot":
			sys.uboot = v
		case "bare":
			bare = v
		case "dir":
			sys.dir = v
		case "file":
			sys.file = v
		}
	}
	sys.at = parseMounts(said).of(sys.dir)
	if dir == "" {
		dir = "/boot/extlinux, /boot/syslinux, /extlinux, /syslinux or /boot"
	}
	switch {
	case sys.uid != "0":
		return nil, fmt.Errorf("the user on the target has the id %s, and only root may write to ldlinux.sys", sys.uid)
	case sys.dir == "" && bare != "":
		return nil, fmt.Errorf("%s on the target has an ldlinux.sys, but neither extlinux.conf nor syslinux.cfg", bare)
	case sys.dir == "" && sys.uboot != "":
		return nil, fmt.Errorf("there is no ldlinux.sys beside %s, so it is U-Boot that reads this file, and U-Boot has no one-shot for it: use boot \"uboot\"", sys.uboot)
	case sys.dir == "":
		return nil, fmt.Errorf("no ldlinux.sys with its configuration in %s on the target: set dir", dir)
	case sys.efi:
		return nil, fmt.Errorf("the target was started by EFI, and %s/ldlinux.sys is for BIOS: a one-shot would have no effect; see systemd-boot or grub", sys.dir)
	case !sys.program:
		return nil, errors.New("there is no program extlinux on the target, and only it can set the one-shot: install its package (Debian: extlinux)")
	}
	return sys, nil
}

// Lines around what is ours in a configuration.
const (
	blockBegin = "# BEGIN kernsweep: replaced at every boot by kernsweep"
	blockEnd   = "# END kernsweep"
)

// withBlock is conf with our entries replaced by block, "" for none. They come
// last, so that they are never the first, which some menus take for the default.
func withBlock(conf, block string) (string, error) {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(conf) {
		switch strings.TrimSpace(line) {
		case blockBegin:
			inside = true
			continue
		case blockEnd:
			if inside {
				inside = false
				continue
			}
		}
		if !inside {
			out.WriteString(line)
		}
	}
	if inside {
		return "", fmt.Errorf("the line %q has no %q behind it: which lines are ours cannot be told; remove them by hand", blockBegin, blockEnd)
	}
	s := out.String()
	if block == "" {
		return s, nil
	}
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	return s + blockBegin + "\n" + block + blockEnd + "\n", nil
}

// extlinuxBlock is an entry. Paths count from the root of the file system, which
// on btrfs is that of the subvolume that EXTLINUX was installed in.
func extlinuxBlock(sys *extlinuxSystem, in installed, title, label, line string) string {
	inside := sys.at.within
	if sys.at.fstype == "btrfs" {
		inside = mount{dir: sys.at.dir, root: "/"}.within
	}
	s := fmt.Sprintf("LABEL %s\n  MENU LABEL kernsweep: %s\n  LINUX %s\n", label, title, inside(in.Kernel))
	if in.Initrd != "" {
		s += "  INITRD " + inside(in.Initrd) + "\n"
	}
	return s + "  APPEND " + line + "\n"
}

// writeConf puts a configuration in place in one step, with the old one's owner
// and mode where the file system has them, and makes sure it is on the disk.
func writeConf(ctx context.Context, conn targets.Conn, file, text string) error {
	part := file + ".kernsweep"
	err := conn.Put(ctx, part+".new", 0o600, strings.NewReader(text))
	if err == nil {
		_, err = shell(ctx, conn, `f=$1 t=$2
cp -p "$f" "$t" && cat "$t.new" >"$t" && cmp -s "$t" "$t.new" && { sync -f "$t" 2>/dev/null || sync; } && mv "$t" "$f" || { rm -f "$t" "$t.new"; exit 1; }
rm -f "$t.new"
sync -f "$f" 2>/dev/null || sync`, file, part)
	}
	if err != nil {
		return fmt.Errorf("writing %s on the target: %w", file, err)
	}
	return nil
}
