package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"kernsweep/targets"
)

// grubSystem is what matters to GRUB of the running system.
type grubSystem struct {
	machine, cmdline string
	secureBoot       bool

	envFile  string // without symbolic links
	env      grubEnv
	envDisk  grubDisk
	bootDisk grubDisk
	into     string // without symbolic links
	uuid     string // of bootDisk's file system
	mounts   mounts

	entriesFile string // without symbolic links
	entriesMode fs.FileMode
	entries     string // what stands in it
}

// grubDisk is the block device of a file system.
type grubDisk struct {
	mount  mount
	name   string // "sda1", "dm-0"; "" for none
	dmUUID string // of a device-mapper device: "LVM-…", "CRYPT-…", "mpath-…"
}

// The paths of files that do not exist yet are those of their folders. The UUID
// is looked for by the names that udev makes, else asked of blkid.
const grubScript = `into=$1 env=$2 entries=$3
[ -d "$into" ] || { echo "there is no folder $into" >&2; exit 1; }
echo "machine $(uname -m)"
echo "cmdline $(cat /proc/cmdline)"
echo "into $(cd "$into" && pwd -P)"
r=$(readlink -f "$env") && echo "env $r"
r=$(readlink -f "$entries") && echo "entries $r"
m=$(stat -c %a "$entries" 2>/dev/null) && echo "mode $m"
( : >>"$env" ) 2>/dev/null && echo "writable yes"
s=$(od -A n -t u1 -j 4 -N 1 /sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c 2>/dev/null) && echo "secureboot $s"
cat /proc/self/mountinfo
for d in /sys/class/block/*; do
	[ -e "$d/dev" ] || continue
	echo "block ${d##*/} $(cat "$d/dev") $(cat "$d/dm/uuid" 2>/dev/null)"
done
for l in /dev/disk/by-uuid/*; do
	[ -e "$l" ] && t=$(readlink -f "$l") && echo "uuid ${t##*/} ${l##*/}"
done
blkid 2>/dev/null | sed -n 's/^\/dev\/\([^:]*\):.* UUID="\([^"]*\)".*/uuid \1 \2/p'
true`

// surveyGrub reads it all. dir is that of the configuration.
func surveyGrub(ctx context.Context, conn targets.Conn, dir, into, entries string) (*grubSystem, error) {
	s := &grubSystem{envFile: path.Join(dir, "grubenv"), into: into, entriesFile: entries, entriesMode: 0o644}
	var env bytes.Buffer
	if err := conn.Get(ctx, s.envFile, &env); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s on the target: make it with grub-editenv %s create", s.envFile, s.envFile)
	} else if err != nil {
		return nil, err
	}
	s.env = grubEnv(env.String())
	if err := s.env.check(); err != nil {
		return nil, fmt.Errorf("the environment block %s is damaged: %w; make it anew with grub-editenv %s create", s.envFile, err, s.envFile)
	}
	said, err := shell(ctx, conn, grubScript, into, s.envFile, entries)
	if err != nil {
		return nil, err
	}
	if err := s.read(said); err != nil {
		return nil, err
	}
	var now bytes.Buffer
	if err := conn.Get(ctx, s.entriesFile, &now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s.entries = now.String()
	return s, s.readUUID(ctx, conn)
}

// read takes what grubScript printed.
func (s *grubSystem) read(said string) error {
	s.mounts = parseMounts(said)
	writable := false
	blocks, dm, uuids := map[string]string{}, map[string]string{}, map[string]string{}
	for line := range strings.SplitSeq(said, "\n") {
		key, v, _ := strings.Cut(line, " ")
		f := strings.Fields(v)
		switch {
		case key == "machine":
			s.machine = v
		case key == "cmdline":
			s.cmdline = v
		case key == "into":
			s.into = v
		case key == "env":
			s.envFile = v
		case key == "entries":
			s.entriesFile = v
		case key == "mode" && len(f) == 1:
			if m, err := strconv.ParseUint(f[0], 8, 9); err == nil {
				s.entriesMode = fs.FileMode(m)
			}
		case key == "writable":
			writable = true
		case key == "secureboot":
			s.secureBoot = strings.TrimSpace(v) == "1"
		case key == "block" && len(f) >= 2:
			blocks[f[1]] = f[0]
			if len(f) > 2 {
				dm[f[0]] = f[2]
			}
		case key == "uuid" && len(f) == 2:
			if uuids[f[0]] == "" {
				uuids[f[0]] = f[1]
			}
		}
	}
	disk := func(p string) grubDisk {
		m := s.mounts.of(p)
		name := blocks[m.dev]
		return grubDisk{m, name, dm[name]}
	}
	s.envDisk, s.bootDisk = disk(s.envFile), disk(s.into)
	s.uuid = uuids[s.bootDisk.name]
	if s.uuid == "" { // blkid knows device-mapper devices by another name
		s.uuid = uuids[strings.TrimPrefix(s.bootDisk.mount.source, "/dev/")]
	}
	if !writable {
		why := "its user may not write it"
		if m := s.envDisk.mount; m.readOnly() {
			why = fmt.Sprintf("%s is mounted read-only (%s)", m.dir, m.fstype)
		}
		return fmt.Errorf("%s on the target is not writable: %s", s.envFile, why)
	}
	return nil
}

// plainFS are the file systems, by Linux's names, that GRUB finds a file's
// blocks on and can overwrite one in place.
var plainFS = [...]string{"ext2", "ext3", "ext4", "xfs", "vfat", "msdos", "exfat", "f2fs", "jfs"}

// check refuses disks that GRUB cannot read kernels from, or cannot clear
// next_entry on (the list is that of GRUB's own 00_header).
func (s *grubSystem) check(cfg *grubConfig) error {
	env, boot := s.envDisk, s.bootDisk
	const ever = "so GRUB could not clear next_entry and would boot the kernel under test for ever"
	switch {
	case !slices.Contains(plainFS[:], env.mount.fstype):
		return fmt.Errorf("%s lies on %s, which GRUB cannot write to, %s: put /boot on ext4 or xfs", s.envFile, env.mount.fstype, ever)
	case env.abstract() != "":
		return fmt.Errorf("%s lies on %s, which GRUB cannot write to, %s: put /boot on a plain partition", s.envFile, env.abstract(), ever)
	case boot.mount.fstype == "btrfs":
		return fmt.Errorf("%s lies on btrfs, where the path to a kernel depends on the subvolume that GRUB takes for the root: set into to a folder on ext4, xfs or vfat", s.into)
	case !slices.Contains(plainFS[:], boot.mount.fstype):
		return fmt.Errorf("%s lies on %s, from which GRUB does not load kernels here: set into to a folder on ext4, xfs or vfat", s.into, boot.mount.fstype)
	case strings.HasPrefix(boot.dmUUID, "CRYPT-"):
		return fmt.Errorf("%s is encrypted, so GRUB would wait for a passphrase: set into to a folder that is not", s.into)
	case boot.abstract() != "" && !slices.ContainsFunc(cfg.modules(), readsAbstract):
		return fmt.Errorf("%s lies on %s, and the configuration never loads GRUB's module for that: set into to a folder on a plain partition", s.into, boot.abstract())
	case s.uuid == "":
		return fmt.Errorf("the file system of %s (%s) has no UUID that can be found, in /dev/disk/by-uuid or by blkid, and GRUB would look for it by that", s.into, boot.mount.source)
	}
	return nil
}

func readsAbstract(module string) bool {
	return module == "lvm" || module == "diskfilter" || strings.HasPrefix(module, "mdraid")
}

// abstract names a device that the firmware does not see as a disk, "" for a
// plain one. Multipath and BIOS RAID are plain to the firmware.
func (d grubDisk) abstract() string {
	switch {
	case strings.HasPrefix(d.dmUUID, "LVM-"):
		return "LVM (" + d.name + ")"
	case strings.HasPrefix(d.dmUUID, "CRYPT-"):
		return "an encrypted device (" + d.name + ")"
	case strings.Contains(d.dmUUID, "mpath-"), strings.HasPrefix(d.dmUUID, "DMRAID-"):
		return ""
	case strings.HasPrefix(d.name, "dm-"):
		return "device-mapper (" + d.name + ")"
	case strings.HasPrefix(d.name, "md"):
		return "software RAID (" + d.name + ")"
	case strings.HasPrefix(d.name, "bcache"):
		return "a cached device (" + d.name + ")"
	}
	return ""
}

// checkImage refuses an image that GRUB or the machine would refuse.
func (s *grubSystem) checkImage(file string) error {
	image, err := readImage(file)
	if err != nil {
		return err
	}
	if arch := kernelArch(s.machine); arch != "" && image.arch != "" && arch != image.arch && !(arch == "amd64" && image.arch == "386") {
		return fmt.Errorf("the image is for %s, and the target is %s (%s)", image.arch, arch, s.machine)
	}
	if s.secureBoot && !image.signed {
		return errors.New("the firmware has Secure Boot on, and this image carries no signature, so GRUB would refuse it: sign it with a key that the firmware or shim knows, or switch Secure Boot off")
	}
	return nil
}

// inside are the paths of installed files in their own file system, as GRUB
// sees them.
func (s *grubSystem) inside(in installed) installed {
	at := func(p string) string {
		if p == "" {
			return ""
		}
		return s.bootDisk.mount.within(path.Join(s.into, path.Base(p)))
	}
	return installed{at(in.Kernel), at(in.Initrd), at(in.DTB)}
}

// bootOnce makes id the entry of the next start, "" none, and reads it back. It
// writes the block itself: grub-editenv would cut the file to nothing first, and
// a crash in between leaves a block that GRUB cannot use.
func (s *grubSystem) bootOnce(ctx context.Context, conn targets.Conn, id string) error {
	block, err := s.env.set("next_entry", id)
	if err != nil {
		return err
	}
	_, err = shell(ctx, conn, `printf %s "$2" | dd of="$1" ibs=1 obs=1024 count=1024 conv=notrunc`, s.envFile, string(block))
	if err != nil {
		return fmt.Errorf("writing %s: %w", s.envFile, err)
	}
	if err := s.flush(ctx, conn); err != nil {
		return err
	}
	var back bytes.Buffer
	if err := conn.Get(ctx, s.envFile, &back); err != nil {
		return err
	}
	if back.String() != string(block) {
		return fmt.Errorf("%s does not hold what was written to it (next_entry=%q): is its disk failing?", s.envFile, grubEnv(back.String()).get("next_entry"))
	}
	s.env = block
	return nil
}

// flush brings what was written to where GRUB finds it. GRUB reads no journal:
// on XFS a freeze moves it to its place; / is not frozen, for the shell that
// would thaw it lives there, and a clean shutdown does the same.
func (s *grubSystem) flush(ctx context.Context, conn targets.Conn) error {
	script := "sync\nfor d; do fsfreeze -f \"$d\" && fsfreeze -u \"$d\"; done\nsync"
	var xfs []string
	for _, d := range []grubDisk{s.envDisk, s.bootDisk} {
		if d.mount.fstype == "xfs" && d.mount.dir != "/" && !slices.Contains(xfs, d.mount.dir) {
			xfs = append(xfs, d.mount.dir)
		}
	}
	if _, err := shell(ctx, conn, script, xfs...); err != nil {
		return fmt.Errorf("writing everything to disk: %w", err)
	}
	return nil
}
