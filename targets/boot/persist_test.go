package boot

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kernsweep/targets"
)

// The tables of real systems, shortened to what decides.
var tables = map[string]struct {
	mounts, dir string
	want        storage
	why         string
}{
	"openwrt, jffs2": {`rootfs / rootfs rw 0 0
/dev/root /rom squashfs ro,relatime 0 0
tmpfs /tmp tmpfs rw,nosuid,nodev,noatime 0 0
/dev/mtdblock4 /overlay jffs2 rw,noatime 0 0
overlayfs:/overlay / overlay rw,noatime,lowerdir=/,upperdir=/overlay/upper,workdir=/overlay/work 0 0
`, "/etc", kept, ""},
	"openwrt, flash not ready": {`/dev/root /rom squashfs ro,relatime 0 0
tmpfs /tmp tmpfs rw,nosuid,nodev,noatime 0 0
tmpfs /tmp/root tmpfs rw,noatime,mode=755 0 0
overlayfs:/tmp/root / overlay rw,noatime,lowerdir=/,upperdir=/tmp/root/upper,workdir=/tmp/root/work 0 0
`, "/etc", lost, "changes will be lost at the next boot (overlay on tmpfs)"},
	"openwrt, failsafe": {`/dev/root / squashfs ro,relatime 0 0
tmpfs /tmp tmpfs rw,nosuid,nodev 0 0
`, "/etc", lost, "the file system at / (squashfs) is read-only"},
	"openwrt, its /tmp": {`/dev/mtdblock4 /overlay jffs2 rw 0 0
overlayfs:/overlay / overlay rw,upperdir=/overlay/upper 0 0
tmpfs /tmp tmpfs rw,nosuid,nodev 0 0
`, "/tmp/kernsweep", lost, "changes will be lost at the next boot (tmpfs at /tmp is in memory)"},
	"openwrt, ubifs": {`/dev/root /rom squashfs ro,relatime 0 0
/dev/ubi0_1 /overlay ubifs rw,noatime 0 0
overlayfs:/overlay / overlay rw,noatime,lowerdir=/,upperdir=/overlay/upper,workdir=/overlay/work 0 0
`, "/root", kept, ""},
	"openwrt, f2fs": {`/dev/root /rom squashfs ro,relatime 0 0
/dev/loop0 /overlay f2fs rw,lazytime,noatime,background_gc=on 0 0
overlayfs:/overlay / overlay rw,noatime,lowerdir=/,upperdir=/overlay/upper,workdir=/overlay/work 0 0
`, "/", kept, ""},
	"openwrt, extroot": {`/dev/root /rom squashfs ro,relatime 0 0
/dev/mtdblock5 /rwm jffs2 rw,noatime 0 0
/dev/sda1 /overlay ext4 rw,relatime 0 0
overlayfs:/overlay / overlay rw,noatime,lowerdir=/,upperdir=/overlay/upper,workdir=/overlay/work 0 0
`, "/etc", kept, ""},
	"openwrt, overlay's flash went read-only": {`/dev/root /rom squashfs ro 0 0
/dev/ubi0_1 /overlay ubifs ro,noatime 0 0
overlayfs:/overlay / overlay rw,upperdir=/overlay/upper 0 0
`, "/etc", lost, "the file system below the overlay (ubifs at /overlay) is read-only"},
	"kamikaze": {`rootfs / rootfs rw 0 0
/dev/root /rom squashfs ro 0 0
none /tmp tmpfs rw,nosuid,nodev 0 0
/dev/mtdblock/3 /jffs jffs2 rw 0 0
mini_fo:/jffs / mini_fo rw 0 0
`, "/etc", kept, ""},
	"kamikaze, flash not ready": {`/dev/root /rom squashfs ro 0 0
none /tmp tmpfs rw 0 0
mini_fo:/tmp/root / mini_fo rw 0 0
`, "/etc", lost, "changes will be lost at the next boot (overlay on tmpfs)"},
	"backfire, overlay without options": {`/dev/root /rom squashfs ro 0 0
/dev/mtdblock3 /overlay jffs2 rw 0 0
overlayfs:/overlay / overlayfs rw,relatime,lowerdir=/ 0 0
`, "/etc", kept, ""},
	"x86, ext4": {`/dev/root / ext4 rw,noatime 0 0
/dev/sda1 /boot vfat rw,relatime 0 0
`, "/boot/kernsweep", kept, ""},
	"x86, root remounted after an error": {`/dev/sda2 / ext4 ro,relatime,errors=remount-ro 0 0
`, "/boot", lost, "the file system at / (ext4) is read-only"},
	"a system in memory with an ESP": {`rootfs / rootfs rw,size=114800k 0 0
tmp /tmp tmpfs rw 0 0
/dev/vda1 /efi vfat rw,relatime,fmask=0022 0 0
`, "/efi/kernsweep", kept, ""},
	"a system in memory": {`rootfs / rootfs rw 0 0
`, "/boot", lost, "changes will be lost at the next boot (rootfs at / is in memory)"},
	"a RAM disk": {`/dev/ram0 / ext2 rw 0 0
`, "/boot", lost, "changes will be lost at the next boot (/dev/ram0 at / is in memory)"},
	"a stick whose name has a blank": {`/dev/root / ext4 ro 0 0
/dev/sdb1 /mnt/my\040stick vfat rw 0 0
`, "/mnt/my stick/kernels", kept, ""},
	"another mount on top": {`/dev/sda2 /boot ext4 ro 0 0
/dev/sda2 /boot ext4 rw 0 0
`, "/boot", kept, ""},
	"a folder that only begins alike": {`/dev/sda2 / ext4 rw 0 0
tmpfs /boot tmpfs rw 0 0
`, "/bootstrap", kept, ""},
	"nothing known": {"", "/boot", kept, ""},
}

func TestStorage(t *testing.T) {
	for name, c := range tables {
		if st, why := storageOf(mountTable(c.mounts), c.dir); st != c.want || why != c.why {
			t.Errorf("%s: %v %q, want %v %q", name, st, why, c.want, c.why)
		}
	}
}

const (
	notReady = "[   10.493603] mount_root: jffs2 not ready yet, using temporary tmpfs overlay\n"
	marker   = "[   44.040000] jffs2_scan_eraseblock(): End of filesystem marker found at 0x0\n"
	erasing  = "[   44.050000] jffs2_build_filesystem(): erasing all blocks after the end marker... \n"
	switched = "[   92.110000] mount_root: switching to jffs2 overlay\n"
)

func TestOverlayLog(t *testing.T) {
	for name, c := range map[string]struct {
		log, said string
		want      storage
	}{
		"waits":              {notReady, "using temporary tmpfs overlay", pending},
		"erases":             {notReady + marker + erasing, "erasing all blocks", pending},
		"switches just now":  {notReady + marker + erasing + switched, "switching to jffs2", pending},
		"new flash":          {"mount_root: no usable overlay filesystem found, using tmpfs overlay\n", "no usable", pending},
		"f2fs":               {"mount_root: overlay filesystem in /dev/loop0 has not been formatted yet\n", "not been formatted", pending},
		"makes one":          {"running:  1312 root  3028 R  mkfs.f2fs -q -l rootfs_data /dev/loop0\n", "mkfs.f2fs", pending},
		"too small":          {"jffs2: Too few erase blocks (4)\nmount_root: failed - mount -t jffs2 /dev/mtdblock4 /rom/overlay\n" + notReady, "failed - mount -t jffs2", lost},
		"no OpenWrt":         {"", "", lost},
		"failed, then again": {"mount_root: failed - mount -t jffs2 /dev/mtdblock4 /rom/overlay\n" + switched, "switching", pending},
	} {
		if st, said := overlayState(c.log); st != c.want || !strings.Contains(said, c.said) {
			t.Errorf("%s: %v %q", name, st, said)
		}
	}
}

// says is a Conn to a system that answers each command by a function.
type says func(c targets.Cmd) (string, targets.Exit, error)

func (f says) Run(ctx context.Context, c targets.Cmd) (targets.Exit, error) {
	if ctx.Err() != nil {
		return targets.Exit{}, ctx.Err()
	}
	out, e, err := f(c)
	if err == nil && c.Stdout != nil {
		_, err = io.WriteString(c.Stdout, out)
	}
	return e, err
}

func (says) Put(context.Context, string, fs.FileMode, io.Reader) error { return errors.ErrUnsupported }
func (says) Get(context.Context, string, io.Writer) error              { return errors.ErrUnsupported }
func (says) Close() error                                              { return nil }

// openwrt is a system with these tables and this log.
func openwrt(mounts, log func() string) says {
	return func(c targets.Cmd) (string, targets.Exit, error) {
		switch script := c.Argv[2]; {
		case strings.Contains(script, "pwd -P"):
			return c.Argv[len(c.Argv)-1] + "\n", targets.Exit{}, nil
		case strings.Contains(script, "dmesg"):
			return log(), targets.Exit{}, nil
		}
		return mounts(), targets.Exit{}, nil
	}
}

// firstBoot is a system whose overlay is ready after some time; 0 is never.
func firstBoot(ready time.Duration) says {
	begin := time.Now()
	return openwrt(func() string {
		if ready > 0 && time.Since(begin) >= ready {
			return tables["openwrt, jffs2"].mounts
		}
		return tables["openwrt, flash not ready"].mounts
	}, func() string { return notReady + marker + erasing })
}

func TestPersistentWaitsForTheFlash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := persistent(t.Context(), firstBoot(45*time.Second), "/etc"); err != nil || time.Since(begin) > 50*time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		err := persistent(t.Context(), firstBoot(0), "/etc")
		if err == nil || !strings.Contains(err.Error(), "not ready to keep anything after 5m0s") || !strings.Contains(err.Error(), "erasing all blocks") {
			t.Error(err)
		}
		if time.Since(begin) != formatLimit {
			t.Errorf("gave up after %s", time.Since(begin))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		if err := persistent(ctx, firstBoot(0), "/etc"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestPersistentRefusesAtOnce(t *testing.T) {
	conn := openwrt(func() string { return tables["openwrt, flash not ready"].mounts }, func() string { return "" })
	if err := persistent(t.Context(), conn, "/etc"); err == nil || !strings.Contains(err.Error(), "/etc cannot keep anything: changes will be lost at the next boot (overlay on tmpfs)") {
		t.Error(err)
	}
	var link *targets.LinkError
	broken := says(func(targets.Cmd) (string, targets.Exit, error) {
		return "", targets.Exit{}, &targets.LinkError{Phase: "exec", Err: io.EOF}
	})
	if err := persistent(t.Context(), broken, "/etc"); !errors.As(err, &link) {
		t.Error(err)
	}
}

// What runs on a target is read by its shell, which on a router is BusyBox.
func TestScriptsInShells(t *testing.T) {
	for _, script := range []string{realDirScript, overlayLogScript, roomScript, sdScript, oneShotScript, extlinuxScript} {
		for _, sh := range [][]string{{"dash"}, {"bash"}, {"busybox", "ash"}} {
			if out := run(t, append(sh, "-n", "-c", script)...); out != "" {
				t.Errorf("%s: %s", sh, out)
			}
		}
	}
	dir := t.TempDir()
	for _, sh := range [][]string{{"dash"}, {"bash"}, {"busybox", "ash"}} {
		for _, sub := range []string{"", "/not/there"} {
			if out := run(t, append(sh, "-c", realDirScript, "sh", dir+sub)...); strings.TrimSpace(out) != dir {
				t.Errorf("%s: %q", sh, out)
			}
		}
		if out := run(t, append(sh, "-c", realDirScript, "sh", "/nowhere/at/all")...); out != "/\n" {
			t.Errorf("%s: %q", sh, out)
		}
	}
}
