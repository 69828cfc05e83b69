package targetstest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/targets"
)

func files(t *testing.T, ctx context.Context, c targets.Conn) {
	dir := t.TempDir()
	path := filepath.Join(dir, "it's a $file")
	put := func(text string, mode fs.FileMode) {
		t.Helper()
		if err := c.Put(ctx, path, mode, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode || info.Size() != int64(len(text)) {
			t.Errorf("got mode %v and %d bytes; want %v and %d", info.Mode().Perm(), info.Size(), mode, len(text))
		}
		var back bytes.Buffer
		if err := c.Get(ctx, path, &back); err != nil {
			t.Fatal(err)
		}
		if back.String() != text {
			t.Errorf("got %q back; want %q", back.String(), text)
		}
	}
	put("first\x00\xff\n", 0o640)
	put("the second is longer", 0o600)
	put("", 0o644)
	put("#!/bin/sh\necho it runs\n", 0o755)
	// A running program can be replaced, since the new one comes by a rename.
	if got := Output(t, ctx, c, path); got != "it runs\n" {
		t.Errorf("ran: %q", got)
	}
	onlyFile(t, dir, path)
	var version bytes.Buffer
	if err := c.Get(ctx, "/proc/version", &version); err != nil || !strings.Contains(version.String(), "Linux") {
		t.Errorf("a file of size 0 with content: %v, %q", err, version.String())
	}
}

func largeFiles(t *testing.T, ctx context.Context, c targets.Conn) {
	dir := t.TempDir()
	path := filepath.Join(dir, "large")
	want := make([]byte, 5<<20+12345)
	seeded := rand.NewChaCha8([32]byte{1})
	if _, err := seeded.Read(want); err != nil {
		t.Fatal(err)
	}
	// A plain reader: its size is not known beforehand.
	if err := c.Put(ctx, path, 0o600, onlyReader{bytes.NewReader(want)}); err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := c.Get(ctx, path, &back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Bytes(), want) {
		t.Errorf("%d bytes came back changed; sent %d", back.Len(), len(want))
	}
	onlyFile(t, dir, path)
}

type onlyReader struct{ r *bytes.Reader }

func (o onlyReader) Read(p []byte) (int, error) { return o.r.Read(p) }

func fileErrors(t *testing.T, ctx context.Context, c targets.Conn) {
	dir := t.TempDir()
	var link *targets.LinkError
	check := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) || errors.As(err, &link) {
			t.Errorf("%s: %v; want one that is %v", what, err, want)
		}
	}
	check("get what is not there", c.Get(ctx, filepath.Join(dir, "none"), &bytes.Buffer{}), fs.ErrNotExist)
	check("put where no folder is", c.Put(ctx, filepath.Join(dir, "none", "x"), 0o600, strings.NewReader("x")), fs.ErrNotExist)
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := c.Put(ctx, folder, 0o600, strings.NewReader("x")); err == nil || errors.As(err, &link) {
		t.Errorf("put over a folder: %v", err)
	}
	if err := c.Get(ctx, folder, &bytes.Buffer{}); err == nil || errors.As(err, &link) {
		t.Errorf("get a folder: %v", err)
	}
	broken := errors.New("source broke")
	path := filepath.Join(dir, "old")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("put from a broken source", c.Put(ctx, path, 0o600, failing{broken}), broken)
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("a failed put changed the file: %q, %v", b, err)
	}
	check("get into a broken writer", c.Get(ctx, path, failing{broken}), broken)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	onlyFile(t, dir, path)
}

// onlyFile checks that no temporary file was left beside path.
func onlyFile(t *testing.T, dir, path string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}
