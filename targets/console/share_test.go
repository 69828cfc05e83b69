package console

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func watch(t *testing.T, runs string) (string, io.ReadCloser) {
	t.Helper()
	who, c, err := Watch(runs, "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return who, c
}

// Viewers get the past and what comes, and are told of the end; also below a
// path that is too long for a socket.
func TestShare(t *testing.T) {
	runs := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if _, _, err := Watch(runs, "t"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nobody shares: %v", err)
	}
	s, err := Offer(runs, "t", "run x of joe\nand more")
	if err != nil {
		t.Fatal(err)
	}
	past := bytes.Repeat([]byte("0123456789abcde\n"), 2*backlogSize/16)
	s.Write(past)
	who, a := watch(t, runs)
	if who != "run x of joe" {
		t.Errorf("who: %q", who)
	}
	got := make([]byte, backlogSize)
	if _, err := io.ReadFull(a, got); err != nil || !bytes.Equal(got, past[:backlogSize]) {
		t.Errorf("the past: %v", err)
	}
	s.Write([]byte("new"))
	if _, err := io.ReadFull(a, got[:3]); err != nil || string(got[:3]) != "new" {
		t.Errorf("%q %v", got[:3], err)
	}
	if _, err := Offer(runs, "t", "another"); err == nil || !strings.Contains(err.Error(), "another process shares") {
		t.Errorf("twice: %v", err)
	}
	s.Write([]byte("last"))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(a); err != nil || string(rest) != "last" {
		t.Errorf("the end: %q %v", rest, err)
	}
	if err := s.Close(); err != nil {
		t.Error("again:", err)
	}
	if st, err := os.Stat(filepath.Join(runs, ".consoles")); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", st.Mode(), err)
	}
}

// A socket that a dead process left is no obstacle.
func TestStaleSocket(t *testing.T) {
	runs := t.TempDir()
	s, err := Offer(runs, "t", "first")
	if err != nil {
		t.Fatal(err)
	}
	s.listen.SetUnlinkOnClose(false)
	s.Close()
	if _, _, err := Watch(runs, "t"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dead one: %v", err)
	}
	if s, err = Offer(runs, "t", "second"); err != nil {
		t.Fatal(err)
	}
	if who, _ := watch(t, runs); who != "second" {
		t.Error(who)
	}
	s.Close()
}

// A viewer that does not read is dropped, and the recording never waits for it.
func TestSlowViewer(t *testing.T) {
	runs := t.TempDir()
	s, err := Offer(runs, "t", "me")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, slow := watch(t, runs)
	chunk := make([]byte, 4096)
	begin := time.Now()
	for range 8 << 20 / len(chunk) {
		s.Write(chunk)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the recording waited: %s", took)
	}
	n, err := io.Copy(io.Discard, slow)
	if err != nil || n >= 8<<20 {
		t.Errorf("%d bytes, %v: it was not dropped", n, err)
	}
	_, again := watch(t, runs) // and may come back
	if _, err := io.ReadFull(again, chunk); err != nil {
		t.Error(err)
	}
}
