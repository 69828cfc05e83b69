package targets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// crashed is a target with files that crashed kernels left.
type crashed struct {
	list    string
	files   map[string]string
	removed []string
	torn    string // this file loses its link half-way
	stuck   bool   // nothing can be removed
}

func (c *crashed) Run(_ context.Context, cmd Cmd) (Exit, error) {
	if cmd.Argv[0] == "rm" {
		if c.stuck {
			fmt.Fprintln(cmd.Stderr, "rm: Operation not permitted")
			return Exit{Code: 1}, nil
		}
		c.removed = append(c.removed, cmd.Argv[2])
		return Exit{}, nil
	}
	_, err := io.WriteString(cmd.Stdout, c.list)
	return Exit{}, err
}

func (c *crashed) Get(_ context.Context, path string, w io.Writer) error {
	body := c.files[path]
	if path == c.torn {
		_, _ = io.WriteString(w, body[:len(body)/2])
		return &LinkError{Phase: "transfer", Err: io.ErrUnexpectedEOF}
	}
	_, err := io.WriteString(w, body)
	return err
}

func (c *crashed) Put(context.Context, string, fs.FileMode, io.Reader) error { return nil }
func (c *crashed) Close() error                                              { return nil }

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestCrashFilesAreKeptAndThenRemoved(t *testing.T) {
	c := &crashed{
		list: "pstore 5 1700000000 /sys/fs/pstore/dmesg-ramoops-0\n" +
			"pstore 3 1700000000 /sys/fs/pstore/../../etc/passwd\n" +
			"moved 4 1700000000 /var/lib/systemd/pstore/170/dmesg.txt\n" +
			"kdump 6 1700000000 /var/crash/2024 10/dmesg.1\n" +
			"kdump 99999999999 1700000000 /var/crash/big/dmesg\n" +
			"pstore 0 1700000000 /sys/fs/pstore/empty\npstore x 1 /sys/fs/pstore/a\nb 1\n/etc\n",
		files: map[string]string{"/sys/fs/pstore/dmesg-ramoops-0": "panic",
			"/var/lib/systemd/pstore/170/dmesg.txt": "oops", "/var/crash/2024 10/dmesg.1": "crash\n"},
	}
	dir := filepath.Join(t.TempDir(), "pstore")
	var left Crashes
	saved, notes, err := left.Collect(t.Context(), c, dir, false)
	want := []string{"pstore-dmesg-ramoops-0", "moved-lib_systemd_pstore_170_dmesg.txt", "kdump-crash_2024_10_dmesg.1"}
	if err != nil || !slices.Equal(saved, want) {
		t.Errorf("saved %q, %v", saved, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "/var/crash/big/dmesg (99999999999 bytes) stays on the target") {
		t.Errorf("notes %q", notes)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "kdump-crash_2024_10_dmesg.1")); err != nil || string(got) != "crash\n" {
		t.Errorf("%q, %v", got, err)
	}
	if fmt.Sprint(c.removed) != "[/sys/fs/pstore/dmesg-ramoops-0]" {
		t.Errorf("removed %q", c.removed)
	}
	// The store is refilled under the same name; what stays is not taken again.
	saved, _, err = left.Collect(t.Context(), c, dir, false)
	if err != nil || fmt.Sprint(saved) != "[pstore-dmesg-ramoops-0.2]" {
		t.Errorf("saved %q, %v", saved, err)
	}
}

func TestCrashFilesFromBefore(t *testing.T) {
	c := &crashed{list: "pstore 5 1 /sys/fs/pstore/x\nkdump 6 1 /var/crash/1/dmesg\n", files: map[string]string{"/sys/fs/pstore/x": "panic", "/var/crash/1/dmesg": "crash\n"}}
	var left Crashes
	dir := filepath.Join(t.TempDir(), "pstore")
	saved, _, err := left.Collect(t.Context(), c, dir, true)
	if err != nil || fmt.Sprint(saved) != "[pstore-x]" {
		t.Errorf("saved %q, %v", saved, err)
	}
	c.list += "kdump 6 2 /var/crash/1/dmesg\n"
	if saved, _, err = left.Collect(t.Context(), c, dir, false); err != nil || fmt.Sprint(saved) != "[pstore-x.2 kdump-crash_1_dmesg]" {
		t.Errorf("saved %q, %v", saved, err)
	}
}

// What did not arrive whole stays in the store, and nothing half is left here.
func TestTornCrashFileStays(t *testing.T) {
	for name, c := range map[string]*crashed{
		"link":   {torn: "/sys/fs/pstore/x", files: map[string]string{"/sys/fs/pstore/x": "panic"}},
		"longer": {files: map[string]string{"/sys/fs/pstore/x": "panic!"}},
		"short":  {files: map[string]string{"/sys/fs/pstore/x": "pan"}},
	} {
		c.list = "pstore 5 1 /sys/fs/pstore/x\n"
		dir := filepath.Join(t.TempDir(), "pstore")
		var left Crashes
		saved, _, err := left.Collect(t.Context(), c, dir, false)
		if err == nil || saved != nil || c.removed != nil || len(names(t, dir)) != 0 {
			t.Errorf("%s: %q, %v, removed %q, left %q", name, saved, err, c.removed, names(t, dir))
		}
	}
	c := &crashed{stuck: true, list: "pstore 5 1 /sys/fs/pstore/x\n", files: map[string]string{"/sys/fs/pstore/x": "panic"}}
	var left Crashes
	saved, notes, err := left.Collect(t.Context(), c, t.TempDir(), false)
	if err != nil || len(saved) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "Operation not permitted") {
		t.Errorf("%q, %q, %v", saved, notes, err)
	}
}
