package boot

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kernsweep/targets"
)

// How long a file system that is being made is waited for, and how often it is
// looked at: the OS gives no event over SSH. The jffs2 of a 16 MB flash takes up
// to two minutes.
const (
	formatLimit = 5 * time.Minute
	formatPoll  = 2 * time.Second
)

// storage says whether what is written below a folder outlives a restart.
type storage int

const (
	kept    storage = iota
	pending         // not yet: the file system that will hold it is being made
	lost            // never, or it cannot be written at all
)

// persistent is nil when what is written below dir of the target is there after
// the next start. It waits, within ctx and formatLimit, for a first-boot file
// system that is being made; any other reason refuses at once.
func persistent(ctx context.Context, conn targets.Conn, dir string) error {
	st, why, err := awaitStorage(ctx, conn, dir, formatLimit)
	switch {
	case err != nil:
		return err
	case st == pending:
		return fmt.Errorf("%s is not ready to keep anything after %s: %s; what must survive a restart is not written there", dir, formatLimit, why)
	case st == lost:
		return fmt.Errorf("%s cannot keep anything: %s", dir, why)
	}
	return nil
}

// awaitStorage looks at dir until it is not pending, at most for limit.
func awaitStorage(ctx context.Context, conn targets.Conn, dir string, limit time.Duration) (storage, string, error) {
	over := time.NewTimer(limit)
	defer over.Stop()
	tick := time.NewTicker(formatPoll)
	defer tick.Stop()
	for {
		st, why, err := lookStorage(ctx, conn, dir)
		if err != nil || st != pending {
			return st, why, err
		}
		select {
		case <-tick.C:
		case <-over.C:
			return st, why, nil
		case <-ctx.Done():
			return st, why, fmt.Errorf("%s: %w", why, context.Cause(ctx))
		}
	}
}

// A folder that does not exist yet lies where its nearest parent does.
const realDirScript = `d=$1
while [ -n "$d" ] && [ ! -d "$d" ]; do d=${d%/*}; done
cd "${d:-/}" && pwd -P`

// The lines of the log that tell of an overlay, the oldest first, and what is
// formatting now.
const overlayLogScript = `{ dmesg; logread; } 2>/dev/null | grep -E 'mount_root|jffs2|Too few erase' | tail -n 60
{ ps w || ps; } 2>/dev/null | grep -E '[m]ount_root |[m]kfs\.' | sed 's/^/running: /'
true`

func lookStorage(ctx context.Context, conn targets.Conn, dir string) (storage, string, error) {
	real, err := shell(ctx, conn, realDirScript, dir)
	if err != nil {
		return lost, "", err
	}
	table, err := shell(ctx, conn, "cat /proc/mounts")
	if err != nil {
		return lost, "", err
	}
	st, why := storageOf(mountTable(table), strings.TrimSpace(real))
	if st != lost || !strings.Contains(why, overlayOn) {
		return st, why, nil
	}
	log, err := shell(ctx, conn, overlayLogScript)
	if err != nil {
		return lost, "", err
	}
	st, said := overlayState(log)
	if said != "" {
		why += "; the log says: " + said
	}
	return st, why, nil
}

// storageOf judges the mount that holds dir.
func storageOf(all mounts, dir string) (storage, string) {
	m := all.of(dir)
	if m.dir == "" {
		return kept, "" // nothing is known against it
	}
	below := m
	switch m.fstype {
	case "overlay", "overlayfs", "mini_fo":
		// Without a mount of its own the upper folder is hidden: nothing is
		// known against it either.
		others := slices.DeleteFunc(slices.Clone(all), func(o mount) bool { return o.dir == "/" })
		below = others.of(upperDir(m))
	}
	memory := inMemory(below)
	switch {
	case sealed(m):
		return lost, fmt.Sprintf("the file system at %s (%s) is read-only", m.dir, m.fstype)
	case memory != "" && below != m:
		return lost, "changes will be lost at the next boot (" + overlayOn + memory + ")"
	case memory != "":
		return lost, fmt.Sprintf("changes will be lost at the next boot (%s at %s is in memory)", memory, m.dir)
	case below.dir != "" && sealed(below):
		return lost, fmt.Sprintf("the file system below the overlay (%s at %s) is read-only", below.fstype, below.dir)
	}
	return kept, ""
}

// overlayOn marks the one reason that may go away by itself.
const overlayOn = "overlay on "

// upperDir is where an overlay writes. Old ones name it only as their device:
// "overlayfs:/overlay", "mini_fo:/jffs".
func upperDir(m mount) string {
	for o := range strings.SplitSeq(m.super, ",") {
		if dir, ok := strings.CutPrefix(o, "upperdir="); ok {
			return dir
		}
	}
	_, dir, _ := strings.Cut(m.source, ":")
	return dir
}

// mountTable reads /proc/mounts, which kernels before mountinfo have as well.
func mountTable(text string) mounts {
	var all mounts
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 4 {
			all = append(all, mount{source: unescape(f[0]), dir: unescape(f[1]), fstype: f[2], opts: f[3], super: f[3]})
		}
	}
	return all
}

// inMemory names what is not there after a restart.
func inMemory(m mount) string {
	switch m.fstype {
	case "tmpfs", "ramfs", "rootfs", "devtmpfs":
		return m.fstype
	}
	for _, d := range []string{"/dev/ram", "/dev/zram"} {
		if strings.HasPrefix(m.source, d) {
			return m.source
		}
	}
	return ""
}

// sealed says that nothing can be written there, now or by its kind.
func sealed(m mount) bool {
	switch m.fstype {
	case "squashfs", "cramfs", "iso9660", "erofs":
		return true
	}
	return m.readOnly()
}

// Lines of OpenWrt's mount_root (package fstools) and of jffs2 in the kernel.
var (
	overlayFailed = regexp.MustCompile(`mount_root: failed - |Too few erase blocks|mount_root: .*failed: `)
	overlayMaking = regexp.MustCompile(`using (temporary )?tmpfs overlay|not been fully initialized yet|not been formatted yet|End of filesystem marker found|jffs2_build_filesystem\(\)|^running: `)
	overlayReady  = regexp.MustCompile(`switching to \w+ overlay|switched to extroot`)
)

// overlayState tells an overlay in memory that waits for its flash from one that
// stays there, and gives the line that says so.
func overlayState(log string) (storage, string) {
	st, said := lost, ""
	failed := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		switch {
		case overlayFailed.MatchString(line):
			failed = line
		case overlayMaking.MatchString(line):
			st, said = pending, line
		case overlayReady.MatchString(line):
			st, said, failed = pending, line, "" // the mounts follow at once
		}
	}
	if failed != "" && !strings.HasPrefix(said, "running: ") {
		return lost, failed
	}
	return st, said
}
