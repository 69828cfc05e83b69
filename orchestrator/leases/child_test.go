package leases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childMutex stops itself while it has the folder's lock, in the middle of a
// change; then it goes on with that.
func childMutex() error {
	f, err := fastFolder(os.Getenv("LEASES_DIR"))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	n := 0
	err = f.change(context.Background(), func(g *guard) error {
		if n++; n == 1 {
			fmt.Println("in the middle")
			_, _ = io.ReadFull(os.Stdin, make([]byte, 1)) // until somebody wants it to go on
		}
		r := Record{ID: newID(), Owner: "sleeper", PID: os.Getpid()}
		return g.save(state{Format: format, Key: "k", Holder: &r})
	})
	fmt.Println("changed after", n, "tries:", err)
	return nil
}

// childFull has a small disk of its own: it fills it while a lease is held, and
// then makes it read-only.
func childFull() error {
	top := os.Getenv("LEASES_DIR")
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("none", top, "tmpfs", 0, "size=64k"); err != nil {
		return err
	}
	dir := filepath.Join(top, "l")
	f, err := fastFolder(dir)
	if err != nil {
		return err
	}
	said := make(chan string, 100)
	k := f.NewKeeper(Holder{Owner: "alice"}, func(s string) { said <- s })
	l, err := k.Take(context.Background(), []Want{{Key: "k", What: "target box"}}, Options{})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(top, "fill"), make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is not full: %v", err)
	}
	if s := <-said; !strings.Contains(s, "no space left") || !strings.Contains(s, "make room there") {
		return fmt.Errorf("about the full disk it said %q", s)
	}
	// For much longer than the lease is valid, nobody gets it, nor anything else.
	other := f.NewKeeper(Holder{Owner: "bob"}, nil)
	for end := time.Now().Add(f.times.ttl + 3*f.times.watch); time.Now().Before(end); {
		ctx, stop := context.WithTimeout(context.Background(), 2*f.times.watch)
		_, err := other.Take(ctx, []Want{{Key: "k", What: "target box"}}, Options{})
		stop()
		if err == nil {
			return errors.New("the lease was taken from a living holder whose disk is full")
		}
	}
	if _, err := other.Take(context.Background(), []Want{{Key: "z", What: "target new"}}, Options{}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), EnvFolder) {
		return fmt.Errorf("a lease on a full disk: %v", err)
	}
	if err := os.Remove(filepath.Join(top, "fill")); err != nil {
		return err
	}
	if s := <-said; !strings.Contains(s, "renewed again") {
		return fmt.Errorf("after there was room it said %q", s)
	}
	if err := l.Check(context.Background(), ""); err != nil {
		return err
	}
	if err := unix.Mount("none", top, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if _, err := Open(dir); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), EnvFolder) {
		return fmt.Errorf("a read-only folder: %v", err)
	}
	if err := l.Check(context.Background(), ""); err != nil {
		return fmt.Errorf("on a read-only disk the lease was given up: %w", err)
	}
	if err := l.Release(); !errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("giving back on a read-only disk: %v", err)
	}
	return nil
}
