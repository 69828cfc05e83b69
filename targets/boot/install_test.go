package boot

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/sshconn"
	"kernsweep/targets/targetstest"
)

// held logs in to tg for a test.
func held(t *testing.T, tg *targets.Target) (context.Context, targets.Conn) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(stop)
	conn, err := tg.Dial(ctx, tg.SSH, targets.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	tg.Held = conn
	return ctx, conn
}

// onSSHD runs f against a real sshd that sees the same mounts as the test.
func onSSHD(t *testing.T, f func(t *testing.T, tg *targets.Target)) {
	d := targetstest.SSHD(t)
	f(t, &targets.Target{Name: "sshd", SSH: d.SSH, Dial: sshconn.New(zap.NewNop()).Dial})
}

// fileOf makes a file of the controller.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// mountTmpfs mounts a RAM file system of the given size at dir for the test.
func mountTmpfs(t *testing.T, dir, size string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "mount", "-t", "tmpfs", "-o", "size="+size, "kernsweep-test", dir)
	t.Cleanup(func() { run(t, "umount", "-l", dir) })
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	return string(out)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestInstall(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		ctx, conn := held(t, tg)
		dir := filepath.Join(t.TempDir(), "it's", "boot")
		k := targets.Kernel{Image: targets.Image{Kernel: fileOf(t, "k", "a kernel"),
			Initrd: fileOf(t, "i", "first") + "," + fileOf(t, "j", "second"), DTB: fileOf(t, "d", "tree")}}
		in, err := install(ctx, conn, dir, k, true)
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range map[string]string{in.Kernel: "a kernel", in.Initrd: "first\x00\x00\x00second\x00\x00", in.DTB: "tree"} {
			if b, err := os.ReadFile(p); err != nil || string(b) != want {
				t.Errorf("%s holds %q, %v", p, b, err)
			}
		}
		if strings.Count(names(t, dir), " ") != 2 {
			t.Errorf("the folder holds %s", names(t, dir))
		}
		before, err := os.Stat(in.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(in.DTB, []byte("tr3e"), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := install(ctx, conn, dir, k, true)
		if err != nil || again != in {
			t.Fatalf("%+v, %v", again, err)
		}
		if after, err := os.Stat(in.Kernel); err != nil || !os.SameFile(before, after) {
			t.Errorf("the kernel was sent again, %v", err)
		}
		if b, err := os.ReadFile(in.DTB); err != nil || string(b) != "tree" {
			t.Errorf("a file of the right size and wrong content stayed: %q, %v", b, err)
		}
	})
}

func TestPruneRemovesOurOwnOnly(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		ctx, conn := held(t, tg)
		dir := t.TempDir()
		theirs := "kernsweep-0123456789ab.x kernsweep-0123456789abc.k kernsweep-012345678.k kernsweep-zzzzzzzzzzzz.k kernsweep.cfg vmlinuz-6.1"
		for _, n := range strings.Fields(theirs + " kernsweep-0123456789ab.k kernsweep-0123456789ab.i kernsweep-ffffffffffff.k kernsweep-00ff00ff00ff.d.part kernsweep-00ff00ff00ff.d.part.kernsweep-abcd2345") {
			if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := prune(ctx, conn, dir+"/", installed{Kernel: dir + "/kernsweep-ffffffffffff.k"}); err != nil {
			t.Fatal(err)
		}
		for _, n := range strings.Fields(theirs + " kernsweep-ffffffffffff.k") {
			if _, err := os.Stat(filepath.Join(dir, n)); err != nil {
				t.Error(err)
			}
		}
		if n := len(strings.Fields(names(t, dir))); n != 7 {
			t.Errorf("left: %s", names(t, dir))
		}
	})
}

func TestInstallRefuses(t *testing.T) {
	onSSHD(t, func(t *testing.T, tg *targets.Target) { // Dropbear has its own mounts
		ctx, conn := held(t, tg)
		dir := filepath.Join(t.TempDir(), "boot")
		mountTmpfs(t, dir, "6m")
		k := targets.Kernel{Image: targets.Image{Kernel: fileOf(t, "k", strings.Repeat("kernel", 500_000))}}
		_, err := install(ctx, conn, dir, k, true)
		if err == nil || !strings.Contains(err.Error(), "changes will be lost at the next boot (tmpfs at "+dir+" is in memory)") {
			t.Errorf("a boot folder in RAM: %v", err)
		}
		var room *roomError
		_, err = install(ctx, conn, dir, k, false)
		if !errors.As(err, &room) || room.needKB != 2930+reserve || room.freeKB != 6144 {
			t.Errorf("no room: %v", err)
		}
		small := targets.Kernel{Image: targets.Image{Kernel: fileOf(t, "k", "small")}}
		if _, err := install(ctx, conn, dir, small, false); err != nil {
			t.Errorf("into RAM, where that is meant: %v", err)
		}
		run(t, "mount", "-o", "remount,ro", dir)
		_, err = install(ctx, conn, dir, k, false)
		if err == nil || !strings.Contains(err.Error(), dir+" is mounted read-only (tmpfs)") {
			t.Errorf("read-only: %v", err)
		}
		if _, err = install(ctx, conn, "/proc/boot", k, false); err == nil || !strings.Contains(err.Error(), "/proc/boot on the target") {
			t.Errorf("a folder that cannot be made: %v", err)
		}
	})
}

// cutting is a link that breaks in the middle of the file named.
type cutting struct {
	targets.Conn
	at string
}

func (c cutting) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	if len(cmd.Argv) > 2 && strings.Contains(cmd.Argv[2], "for pass in") {
		if err := os.WriteFile(c.at, []byte("kern"), 0o600); err != nil {
			return targets.Exit{}, err
		}
	}
	return c.Conn.Run(ctx, cmd)
}

// A file that arrives short, as on a full flash that says nothing, is not given
// its name, and the old one stays.
func TestInstallIsWholeOrNotAtAll(t *testing.T) {
	onDaemon(t, func(t *testing.T, tg *targets.Target) {
		ctx, conn := held(t, tg)
		dir := t.TempDir()
		k := targets.Kernel{Image: targets.Image{Kernel: fileOf(t, "k", "kernel"), Initrd: fileOf(t, "i", "initrd")}}
		whole, err := install(ctx, conn, filepath.Join(dir, "a"), k, false)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, "b")
		_, err = install(ctx, cutting{conn, filepath.Join(to, filepath.Base(whole.Initrd)+".part")}, to, k, false)
		if err == nil || !strings.Contains(err.Error(), "arrived with 4 bytes of 8") {
			t.Errorf("a short file: %v", err)
		}
		if n := names(t, to); n != "" {
			t.Errorf("left behind: %s", n)
		}
	})
}

func TestMountsWithin(t *testing.T) {
	m := parseMounts(`30 1 8:2 /@/boot /mnt/my\040boot rw - btrfs /dev/sda2 rw,subvol=/@/boot` + "\n").of("/mnt/my boot/grub")
	if m.within("/mnt/my boot/grub") != "/@/boot/grub" || m.source != "/dev/sda2" {
		t.Errorf("%+v", m)
	}
}
