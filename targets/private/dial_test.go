package private

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A server that has not come to its callers yet is waited for.
func TestDialAFullQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), path)
	l, err := net.FileListener(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for { // fill it
		c, err := net.Dial("unix", path)
		if err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				t.Fatal(err)
			}
			break
		}
		defer c.Close()
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if c, err := Dial(short, path); err == nil {
		c.Close()
		t.Error("a full queue took one more")
	}
	got := make(chan error, 1)
	go func() {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		c, err := Dial(ctx, path)
		if err == nil {
			c.Close()
		}
		got <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
