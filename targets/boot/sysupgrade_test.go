package boot

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kernsweep/targets"
)

func TestSysupgradeCheck(t *testing.T) {
	for want, s := range map[string]*Sysupgrade{
		"":                    {Keep: "nothing", Dir: "/mnt/usb", Reserve: 8, SettleTime: time.Minute},
		`keep is "all"`:       {Keep: "all"},
		`dir = "tmp"`:         {Dir: "tmp"},
		`dir = "/"`:           {Dir: "/"},
		"reserve = -1":        {Reserve: -1},
		"settle = -1s is neg": {SettleTime: -time.Second},
	} {
		if err := s.Check(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A router of 32 MB: df counts memory as free that is not there.
const router32 = `MemTotal:          28672 kB
MemFree:            7104 kB
Buffers:            1480 kB
Cached:             4312 kB
Shmem:               212 kB
`

func TestSysupgradeRoom(t *testing.T) {
	ram := mountTable("/dev/root / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/sda1 /mnt/usb ext4 rw 0 0\n/dev/root /rom squashfs ro 0 0\n")
	available := router32 + "MemAvailable:       9216 kB\n"
	for _, c := range []struct {
		s          Sysupgrade
		mem        string
		free, size int64
		want       string
	}{
		{Sysupgrade{}, available, 14336, 3 << 10, ""},
		{Sysupgrade{}, available, 14336, 6 << 10,
			"no room in memory: needed are 12.0 MiB (image 6.0 MiB + unpacking 2.0 MiB + reserve 4.0 MiB), MemAvailable is 9.0 MiB of 28.0 MiB, although df says 14.0 MiB are free in /tmp"},
		{Sysupgrade{Reserve: 1}, available, 14336, 6 << 10, ""},
		{Sysupgrade{}, available, 2048, 3 << 10, "no room in /tmp: the image has 3.0 MiB, df says 2.0 MiB are free"},
		{Sysupgrade{Dir: "/mnt/usb"}, available, 1 << 20, 60 << 10, ""},
		{Sysupgrade{Dir: "/rom"}, available, 1 << 20, 1, "read-only"},
		{Sysupgrade{}, router32, 14336, 3 << 10, ""},
		{Sysupgrade{}, router32, 14336, 5 << 10, "this kernel has no MemAvailable) is 9.7 MiB"},
		{Sysupgrade{}, "", 14336, 1, "cannot be told: /proc/meminfo"},
		{Sysupgrade{}, available, -1, 1, "df of the target prints no number"},
	} {
		err := c.s.room(ram, meminfo(c.mem), c.free, c.size)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v %d: %v, want %q", c.s, c.size, err, c.want)
		}
	}
	for text, want := range map[string]int64{
		"Filesystem           1K-blocks      Used Available Use% Mounted on\ntmpfs                    14336        52     14284   0% /tmp\n": 14284,
		"Filesystem 1024-blocks Used Available Capacity Mounted on\nC:/x y 100 40 60 40% /tmp\n":                                             60,
		"Filesystem           1K-blocks\n/dev/a/very/long/name/of/a/device\n   100 40 60 40% /tmp\n":                                         60,
		"df: /tmp: can't find mount point\n": -1,
	} {
		if n := dfFree(text); n != want {
			t.Errorf("%q: %d", text, n)
		}
	}
}

// An old device has only md5sum.
func TestSumsOfAnOldDevice(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, []byte("trx"), 0o644); err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		fmt.Sprintf("md5sum\n%x  /tmp/i\n", md5.Sum([]byte("trx"))): "",
		"md5sum\n00000000000000000000000000000000  /tmp/i\n":        "arrived damaged: its md5 on the target is 000",
		"none\n": "neither sha256sum nor md5sum",
	} {
		err := compareSums(t.Context(), says(func(targets.Cmd) (string, targets.Exit, error) { return said, targets.Exit{}, nil }), "/tmp/i", file)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", said, err)
		}
	}
}

// The memory runs out during the transfer, and what is ended for it is the
// server of our own link.
func TestSysupgradeTransferKilled(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, []byte("trx"), 0o644); err != nil {
		t.Fatal(err)
	}
	gone := false
	tg := &targets.Target{
		Held: says(func(c targets.Cmd) (string, targets.Exit, error) {
			if gone {
				return "", targets.Exit{}, &targets.LinkError{Phase: "exec", Err: io.EOF}
			}
			gone = true // says.Put fails next
			return "tmpfs /tmp tmpfs rw 0 0\n@@mem\n" + router32 + "@@df\ntmpfs 14336 52 14284 0% /tmp\n", targets.Exit{}, nil
		}),
		Dial: func(context.Context, targets.SSH, targets.DialOptions) (targets.Conn, error) {
			return says(func(targets.Cmd) (string, targets.Exit, error) {
				return "[ 99.1] Out of memory: Kill process 812 (dropbear) score 38 or sacrifice child\n", targets.Exit{}, nil
			}), nil
		},
	}
	err := new(Sysupgrade).Boot(t.Context(), tg, targets.Kernel{Name: "k", Image: targets.Image{Kernel: image}})
	refuses(t, "killed", err, "the target ran out of memory: [ 99.1] Out of memory: Kill process 812 (dropbear)")
	refuses(t, "killed", err, "sysupgrade: sending image")
}

func TestSysupgradeSettle(t *testing.T) {
	for name, c := range map[string]struct {
		conn       func() says
		note, want string
	}{
		"ready after a while": {func() says { return firstBoot(50 * time.Second) }, "the overlay was ready 50s after", ""},
		"never ready":         {func() says { return firstBoot(0) }, "", "the overlay is not ready after 2m0s"},
		"flash too small": {func() says {
			return openwrt(func() string { return tables["openwrt, flash not ready"].mounts },
				func() string { return "jffs2: Too few erase blocks (4)\n" })
		}, "changes will be lost at the next boot (overlay on tmpfs); the log says: jffs2: Too few", ""},
		"ready at once": {func() says { return openwrt(func() string { return tables["openwrt, ubifs"].mounts }, nil) }, "", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var notes []string
			s := &Sysupgrade{SettleTime: 2 * time.Minute}
			err := s.Settle(t.Context(), nil, c.conn(), func(n string) { notes = append(notes, n) })
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v", name, err)
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, c.note) || c.note == "" && all != "" {
				t.Errorf("%s: notes %q", name, all)
			}
		})
	}
}

// flashBox is a box whose programs behave as on OpenWrt. Its folder holds what
// the flash and the kernel say.
type flashBox struct {
	*targets.Target
	state string
	image string
}

const fakeCat = `#!/bin/sh
[ $# -gt 0 ] || exec /bin/cat
for f; do
	case $f in
	/proc/mounts)
		# The overlay is ready when it was looked at three times.
		if [ -s @/formatting ]; then
			sed -i '$d' @/formatting
			/bin/cat @/mounts.first
		else
			/bin/cat @/mounts
		fi ;;
	/proc/meminfo) /bin/cat @/meminfo ;;
	*) /bin/cat "$f" ;;
	esac
done`

// Stage 2 ends every process but its own, writes, and reboots.
const fakeSysupgrade = `#!/bin/sh
echo "$*" >>@/calls
case $1 in
-T)
	head -c 4 "$2" | grep -q 'IMG:' && exit 0
	echo "Device acme,box not supported by this image"
	echo "Supported devices: other,thing"
	echo "Image check failed."
	exit 1 ;;
-n) shift ;;
esac
read -r mode <@/mode
case $mode in
fails) echo "tar: short read"; exit 1 ;;
killed)
	echo '[  312.40] Out of memory: Killed process 1511 (sysupgrade) total-vm:1532kB, anon-rss:980kB' >>@/dmesg
	kill -9 $$ ;;
esac
echo "Commencing upgrade. Closing all shell sessions."
for p in /proc/[0-9]*; do
	p=${p#/proc/}
	[ $p = 1 ] || [ $p = $$ ] || kill -9 $p 2>/dev/null
done
if [ $mode = works ]; then
	head -n 1 "$1" | cut -c5- >@/release
	printf '1\n2\n3\n' >@/formatting
fi
sleep 1
kill 1`

func newFlashBox(t *testing.T, mode string) *flashBox {
	b := newBox(t, id1, id2)
	dir := t.TempDir()
	f := &flashBox{state: dir, image: filepath.Join(dir, "image.bin"), Target: &targets.Target{
		Name: "box", SSH: b.ssh, Dial: b.dial, Timeout: targets.Timeouts{Boot: time.Minute, Down: 20 * time.Second},
	}}
	f.SSH.Path = filepath.Join(dir, "bin")
	for name, text := range map[string]string{
		"mode": mode + "\n", "release": "4.14.275\n", "dmesg": notReady + marker + erasing,
		"meminfo":      router32 + "MemAvailable: 16384 kB\n",
		"mounts":       tables["openwrt, jffs2"].mounts,
		"mounts.first": tables["openwrt, flash not ready"].mounts,
		"image.bin":    "IMG:5.15.150\n" + strings.Repeat("squashfs", 100_000),
		"bin/cat":      fakeCat, "bin/sysupgrade": fakeSysupgrade,
		"bin/dmesg":   "#!/bin/sh\nexec /bin/cat @/dmesg",
		"bin/logread": "#!/bin/sh\nexit 0",
		"bin/uname":   "#!/bin/sh\n[ \"$1\" = -r ] || exec /bin/uname \"$@\"\nexec /bin/cat @/release",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "@/", dir+"/")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// flashed is how a boot of a flashBox ended.
type flashed struct {
	rec   targets.BootRecord
	calls string // of sysupgrade
	err   error
}

// flashCases are the ways of a sysupgrade that ends every session.
var flashCases = map[string]struct {
	mode    string
	prepare func(*flashBox)
	check   func(*testing.T, flashed)
}{
	"works": {"works", nil, func(t *testing.T, r flashed) {
		notes := strings.Join(r.rec.Notes, "\n")
		if r.err != nil || r.rec.Release != "5.15.150" || !r.rec.Proven || !strings.Contains(r.calls, "-n ") {
			t.Errorf("%v %+v %q", r.err, r.rec, r.calls)
		}
		for _, want := range []string{"accepted by the device", "this boot writes flash: 0.8 MiB, settings not kept", "the overlay was ready", "own command line"} {
			if !strings.Contains(notes, want) {
				t.Errorf("no note %q in:\n%s", want, notes)
			}
		}
	}},
	"another device's image": {"works", func(f *flashBox) { _ = os.WriteFile(f.image, []byte("TRX!"), 0o644) },
		func(t *testing.T, r flashed) {
			var be *targets.BootError
			if !errors.As(r.err, &be) || be.Stage != "image refused" || !strings.Contains(r.err.Error(), "Supported devices: other,thing") {
				t.Error(r.err)
			}
		}},
	"no room": {"works", func(f *flashBox) {
		_ = os.WriteFile(filepath.Join(f.state, "meminfo"), []byte(router32+"MemAvailable: 5000 kB\n"), 0o644)
	}, func(t *testing.T, r flashed) {
		if r.err == nil || !strings.Contains(r.err.Error(), "no room in memory") || r.calls != "" {
			t.Errorf("%v, calls %q", r.err, r.calls)
		}
	}},
	"fails and goes on": {"fails", nil, func(t *testing.T, r flashed) {
		if r.err == nil || !strings.Contains(r.err.Error(), "ended with status 1 and the system goes on: tar: short read") {
			t.Error(r.err)
		}
	}},
	"killed halfway": {"killed", nil, func(t *testing.T, r flashed) {
		if r.err == nil || !strings.Contains(r.err.Error(), "ended with status 137") || !strings.Contains(r.err.Error(), "ran out of memory: [  312.40] Out of memory: Killed process 1511") {
			t.Error(r.err)
		}
	}},
	"the old kernel comes back": {"unchanged", nil, func(t *testing.T, r flashed) {
		var be *targets.BootError
		if !errors.As(r.err, &be) || be.Stage != targets.StageWrongKernel || !strings.Contains(r.err.Error(), "4.14.275") {
			t.Error(r.err)
		}
	}},
}

// The whole way over real SSH.
func TestSysupgradeWhole(t *testing.T) {
	for name, c := range flashCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFlashBox(t, c.mode)
			if c.prepare != nil {
				c.prepare(f)
			}
			tmp := filepath.Join(f.state, "tmp")
			if err := os.Mkdir(tmp, 0o755); err != nil {
				t.Fatal(err)
			}
			// To the target it is the folder in memory that /tmp is on a router.
			table := strings.ReplaceAll(tables["openwrt, jffs2"].mounts, " /tmp ", " "+tmp+" ")
			if err := os.WriteFile(filepath.Join(f.state, "mounts"), []byte(table), 0o644); err != nil {
				t.Fatal(err)
			}
			f.Boot = &Sysupgrade{Keep: "nothing", Dir: tmp}
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
			defer stop()
			conn, rec, err := targets.Boot(ctx, f.Target, targets.Kernel{Name: "k515", Release: "5.15.*", Cmdline: "quiet",
				Image: targets.Image{Kernel: f.image}}, targets.BootLog{})
			if conn != nil {
				defer conn.Close()
			}
			r := flashed{rec: rec, err: err}
			if b, err := os.ReadFile(filepath.Join(f.state, "calls")); err == nil {
				r.calls = string(b)
			}
			c.check(t, r)
			left, _ := filepath.Glob(tmp + "/*")
			if err != nil && len(left) > 0 && c.mode != "unchanged" {
				t.Errorf("left in the target's memory: %q", left)
			}
		})
	}
}
