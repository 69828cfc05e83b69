package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func opened(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func file(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPutKeepsBytesAndNames(t *testing.T) {
	s, dir := opened(t), t.TempDir()
	for _, name := range []string{"vmlinuz", "with space", "Kern-é漢.img", ".dot", "a..b", "-rf", "new\nline", strings.Repeat("x", 255), ".new-x"} {
		path := file(t, filepath.Join(dir, name), "bytes of "+name)
		got, err := s.Put(t.Context(), []string{path})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		e := got[path]
		if filepath.Base(e.Path) != name || e.Size != int64(len("bytes of "+name)) {
			t.Errorf("%q is kept as %+v", name, e)
		}
		file(t, path, "tomorrow's build") // in place
		if raw, err := os.ReadFile(e.Path); err != nil || string(raw) != "bytes of "+name {
			t.Errorf("%q: the store holds %q, %v", name, raw, err)
		}
		if err := s.Verify(t.Context(), e.Hash, name); err != nil {
			t.Error(err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, newPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What somebody did to an entry must not be booted.
func TestPutReplacesDamagedEntries(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"other bytes": func(p string) error { return errors.Join(os.Chmod(p, 0o644), os.WriteFile(p, []byte("IMAGE"), 0o644)) },
		"truncated":   func(p string) error { return os.Truncate(p, 2) },
		"longer":      func(p string) error { return os.Truncate(p, 9) },
		"empty":       func(p string) error { return os.Truncate(p, 0) },
		"gone":        os.Remove,
		"a link":      func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/etc/hostname", p)) },
	} {
		s := opened(t)
		path := file(t, filepath.Join(t.TempDir(), "k"), "image")
		first, err := s.Put(t.Context(), []string{path})
		if err != nil {
			t.Fatal(err)
		}
		if err := spoil(first[path].Path); err != nil {
			t.Fatal(err)
		}
		if s.Verify(t.Context(), first[path].Hash, "k") == nil {
			t.Errorf("%s: verified", name)
		}
		if _, err := s.Put(t.Context(), []string{path}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if raw, _ := os.ReadFile(first[path].Path); string(raw) != "image" {
			t.Errorf("%s: the store holds %q", name, raw)
		}
	}
}

func TestPutRefuses(t *testing.T) {
	s, dir := opened(t), t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{filepath.Join(dir, "none"): "no such file", dir: "not a regular file", pipe: "not a regular file"} {
		if _, err := s.Put(t.Context(), []string{path}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Put(ctx, []string{file(t, filepath.Join(dir, "k"), "x")}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.room(1<<60, 3); err == nil || !strings.Contains(err.Error(), "3 image files of 1073741824 GB") || !strings.Contains(err.Error(), "--runs") {
		t.Errorf("no room: %v", err)
	}
}

// A build that writes and writes: never a mixture of two states, never for ever.
func TestAFileThatKeepsChanging(t *testing.T) {
	s := opened(t)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := file(t, filepath.Join(t.TempDir(), "k"), strings.Repeat("a", 48<<20))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := byte(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err == nil {
					_, err = f.Write([]byte{i})
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	begin := time.Now()
	_, err := s.copySettled(t.Context(), path)
	close(stop)
	<-stopped
	if !errors.Is(err, errChanged) || !strings.Contains(err.Error(), "a build?") {
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > time.Minute {
		t.Errorf("took %s", d)
	}
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := s.Put(t.Context(), []string{path}); err != nil {
		t.Errorf("once it is quiet: %v", err)
	}
}

// Many at once: one entry, whole.
func TestPutSideBySide(t *testing.T) {
	s := opened(t)
	path := file(t, filepath.Join(t.TempDir(), "k"), strings.Repeat("k", 1<<20))
	errs := make(chan error)
	for range 8 {
		go func() {
			e, err := s.Put(t.Context(), []string{path})
			if err == nil {
				err = s.Verify(t.Context(), e[path].Hash, "k")
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	list, err := os.ReadDir(s.dir)
	if err != nil || len(list) != 2 { // the lock and one folder
		t.Errorf("%v, %v", list, err)
	}
}

func TestHoldWaitsForAPrune(t *testing.T) {
	runs := t.TempDir()
	s, err := Open(runs)
	if err != nil {
		t.Fatal(err)
	}
	release, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Hold(t.Context()) // nested, and by another run
	if err != nil {
		t.Fatal(err)
	}
	again()
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	if _, err := Prune(ctx, runs, Pruning{Keep: -1, Now: time.Now()}); err == nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("pruned while a run was made: %v", err)
	}
	release()
	if _, err := Prune(t.Context(), runs, Pruning{Keep: -1, Now: time.Now()}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 10239: "10239 bytes", 10240: "10 kB", 20 << 20: "20 MB", 300 << 30: "300 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprint(err))
	}
	return v
}

// Two users of one lab server share the store.
func TestTheLockIsForEverybody(t *testing.T) {
	s := opened(t)
	release, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	st, err := os.Stat(filepath.Join(s.dir, lockName))
	if err != nil || st.Mode().Perm()&0o044 == 0 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

// A disk that fills up while a file is copied leaves no half entry.
func TestAFullDiskLeavesNothing(t *testing.T) {
	s := opened(t)
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		_, err := s.add(t.Context(), "vmlinuz", 0o444, func(to *os.File) error {
			_, err := to.WriteString("half a ker")
			return errors.Join(err, &fs.PathError{Op: "write", Path: to.Name(), Err: full})
		})
		if !errors.Is(err, full) || full != syscall.EIO && !strings.Contains(err.Error(), "kernsweep prune --dry-run") {
			t.Errorf("%v: %v", full, err)
		}
		if left, _ := os.ReadDir(s.dir); len(left) > 0 {
			t.Errorf("%v: left %v", full, left)
		}
	}
}
