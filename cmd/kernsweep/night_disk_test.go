package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
)

// newLoop is a block device with an empty ext4 on it, gone with the test.
func newLoop(t *testing.T, size int64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	f.Close()
	mkfs := targetstest.Tool(t, "mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4")
	if out, err := exec.Command(mkfs, "-q", "-F", file).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	losetup := targetstest.Tool(t, "losetup", "/usr/sbin/losetup", "/sbin/losetup")
	out, err := exec.Command(losetup, "--find", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (this test needs root): %v: %s", err, out)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command(losetup, "--detach", device).CombinedOutput(); err != nil {
			t.Errorf("losetup: %v: %s", err, out)
		}
	})
	return device
}

// mounted mounts a file system of its own at a place's runs.
func mounted(t *testing.T, p place, source, fstype, options string) {
	t.Helper()
	if err := os.MkdirAll(p.runs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(source, p.runs, fstype, 0, options); err != nil {
		t.Fatalf("mount (this test needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(p.runs, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func fullDisk(t *testing.T, n *night, p place) {
	mounted(t, p, "tmpfs", "tmpfs", "size=64m")
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	ballast := filepath.Join(p.runs, ".ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	f.Close()
	status := c.wait(t)
	if said := c.err.String(); status != exitInfra || !strings.Contains(said, "no space left") || !strings.Contains(said, "resume") {
		t.Errorf("status %d:\n%s", status, said)
	}
	n.nothingHeld(t, p)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	n.resumed(t, p)
}

// readOnlyDisk: an error makes the kernel turn a file system read-only under a
// running controller.
func readOnlyDisk(t *testing.T, n *night, p place) {
	targetstest.Tool(t, "mkfs.ext4", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4")
	disk := newLoop(t, 48<<20)
	mounted(t, p, disk, "ext4", "errors=remount-ro")
	c := n.start(t, p, "run", "night")
	c.awaitRecords(t, p, 45)
	syscall.Sync() // what was written long ago is on the disk
	fault := filepath.Join("/sys/fs/ext4", filepath.Base(disk), "trigger_fs_error")
	if err := os.WriteFile(fault, []byte("a test\n"), 0o200); err != nil {
		t.Fatal(err)
	}
	status := c.wait(t)
	if said := c.err.String(); status != exitInfra || !strings.Contains(said, "read-only") || !strings.Contains(said, "resume") {
		t.Errorf("status %d:\n%s", status, said)
	}
	for _, f := range untilNone(t.Context(), leftLimit, n.lab.Left) {
		t.Errorf("before resume: %s", f)
	}
	if err := syscall.Unmount(p.runs, 0); err != nil {
		t.Fatal(err)
	}
	checkDisk(t, disk)
	if err := syscall.Mount(disk, p.runs, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	n.resumed(t, p)
}

// checkDisk mends a file system. The kernel may hold the device for a moment
// after it was unmounted.
func checkDisk(t *testing.T, disk string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), leftLimit)
	defer stop()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		out, err := exec.Command(targetstest.Tool(t, "e2fsck", "/usr/sbin/e2fsck", "/sbin/e2fsck"), "-fy", disk).CombinedOutput()
		if err == nil || strings.Contains(err.Error(), "status 1") { // errors were corrected, fsck(8)
			return
		}
		if !strings.Contains(string(out), "in use") {
			t.Fatalf("e2fsck: %v: %s", err, out)
		}
		select {
		case <-ctx.Done():
			t.Fatalf("e2fsck: %v: %s", err, out)
		case <-again.C:
		}
	}
}
