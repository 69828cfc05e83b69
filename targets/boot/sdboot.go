package boot

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kernsweep/targets"
)

// SDBoot starts a kernel once by systemd-boot: an entry of ours beside the
// others (Boot Loader Specification, type 1) and the EFI variable
// LoaderEntryOneShot, which systemd-boot takes back before it starts the entry
// (https://systemd.io/BOOT_LOADER_INTERFACE). Every other start brings the default.
type SDBoot struct {
	oneShot
	Dir string `hcl:"dir,optional" doc:"mount point of the partition whose entries systemd-boot reads, the ESP or XBOOTLDR (default: what bootctl says, else the first of /efi, /boot, /boot/efi that has a folder loader)"`
}

// ownEntry is the shell pattern of the entries that this method writes.
const ownEntry = "kernsweep-" + hex12 + ".conf"

// Check refuses what cannot work.
func (b *SDBoot) Check() error {
	return errors.Join(absolute("dir", b.Dir), b.check())
}

// Boot installs k beside the other kernels, points the next start at it, and
// asks for that start.
func (b *SDBoot) Boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	return b.start(ctx, "systemd-boot", t, k, b.boot)
}

func (b *SDBoot) boot(ctx context.Context, t *targets.Target, k targets.Kernel) error {
	sctx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	sys, err := surveySDBoot(sctx, t.Held, b.Dir)
	if err != nil {
		return err
	}
	if err := b.fits(sys, k); err != nil {
		return err
	}
	line, err := b.line(sys.cmdline, k)
	if err != nil {
		return err
	}
	place, err := sys.place(b.Dir)
	if err != nil {
		return err
	}
	sum, err := hashFile(k.Image.Kernel)
	if err != nil {
		return err
	}
	file := "kernsweep-" + sum[:12] + ".conf"
	id := sys.id(file)
	if err := sys.keepsDefault(id); err != nil {
		return err
	}
	in, err := installOnce(ctx, t.Held, path.Join(place, "kernsweep"), path.Join(place, "loader/entries"), k)
	if err != nil {
		return err
	}
	if err := writeEntry(ctx, t.Held, path.Join(place, "loader/entries"), file, entryText(place, in, k, line)); err != nil {
		return err
	}
	if err := prune(ctx, t.Held, path.Join(place, "kernsweep"), in); err != nil {
		b.notes = append(b.notes, "systemd-boot: "+err.Error())
	}
	if err := setOneShot(ctx, t.Held, id); err != nil {
		return err
	}
	actx, stop := context.WithTimeout(ctx, t.Timeout.WithDefaults().Exec)
	defer stop()
	if err := targets.AskReboot(actx, t.Held, ""); err != nil {
		clearOneShot(ctx, t.Held)
		return err
	}
	return nil
}

// fits refuses an image that systemd-boot cannot start, and notes what may go
// wrong in the firmware.
func (b *SDBoot) fits(sys *sdSystem, k targets.Kernel) error {
	image, err := readImage(k.Image.Kernel)
	switch {
	case err != nil:
		return err
	case !image.pe:
		return fmt.Errorf("kernel %s is no EFI program, and systemd-boot starts nothing else: build it with CONFIG_EFI_STUB", k.Name)
	}
	if sys.secure && !image.signed {
		return fmt.Errorf("kernel %s is not signed and Secure Boot is on: the firmware would refuse it; sign it, or switch Secure Boot off", k.Name)
	}
	if sys.current >= 0 && sys.first >= 0 && sys.current != sys.first {
		b.notes = append(b.notes, fmt.Sprintf("systemd-boot: the firmware's boot entry %04X runs now, but %04X is the first in its order: when that one starts, the one-shot has no effect (efibootmgr)",
			sys.current, sys.first))
	}
	return nil
}

// installOnce installs k. When it does not fit, what earlier boots left goes
// first: entries before the files that they name.
func installOnce(ctx context.Context, conn targets.Conn, dir, entries string, k targets.Kernel) (installed, error) {
	in, err := install(ctx, conn, dir, k, true)
	var room *roomError
	if !errors.As(err, &room) {
		return in, err
	}
	if err := dropEntries(ctx, conn, entries); err != nil {
		return installed{}, err
	}
	if err := prune(ctx, conn, dir, installed{}); err != nil {
		return installed{}, err
	}
	return install(ctx, conn, dir, k, true)
}

// entryText is a type 1 entry. Paths count from the partition's root.
// Boot Loader Specification: https://uapi-group.org/specifications/specs/boot_loader_specification
func entryText(place string, in installed, k targets.Kernel, line string) string {
	var s strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&s, "%s %s\n", name, value)
		}
	}
	inside := func(p string) string {
		if p == "" {
			return ""
		}
		return path.Join("/", strings.TrimPrefix(p, place))
	}
	field("title", "kernsweep: "+k.Name)
	field("linux", inside(in.Kernel))
	field("initrd", inside(in.Initrd))
	field("devicetree", inside(in.DTB))
	field("options", line)
	return s.String()
}

// writeEntry puts the entry in place in one step, reads it again, and then
// removes those of earlier boots.
func writeEntry(ctx context.Context, conn targets.Conn, dir, file, text string) error {
	_, err := shell(ctx, conn, `d=$1 f=$1/$2 text=$3
mkdir -p "$d" || exit 1
t=$d/kernsweep.tmp
printf '%s\n' "$text" >"$t" && { sync -f "$t" 2>/dev/null || sync; } && mv "$t" "$f" || { rm -f "$t"; exit 1; }
[ "$(cat "$f")" = "$text" ] || { echo "$f does not hold what was written" >&2; exit 1; }
for o in "$d"/`+ownEntry+`; do
	[ "$o" = "$f" ] || rm -f "$o"
done
sync -f "$f" 2>/dev/null || sync`, dir, file, strings.TrimSuffix(text, "\n"))
	if err != nil {
		return fmt.Errorf("the entry %s: %w", path.Join(dir, file), err)
	}
	return nil
}

func dropEntries(ctx context.Context, conn targets.Conn, dir string) error {
	if _, err := shell(ctx, conn, `rm -f "$1"/`+ownEntry, dir); err != nil {
		return fmt.Errorf("removing older entries of ours: %w", err)
	}
	return nil
}
