package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A run directory that is moved or deleted under its writer swallows no record.
func TestRunDirectoryGoesAway(t *testing.T) {
	for name, c := range map[string]struct {
		hurt func(dir string) error
		want string
	}{
		"deleted":          {os.RemoveAll, "was moved or deleted"},
		"moved":            {func(d string) error { return os.Rename(d, d+"-old") }, "was moved or deleted"},
		"journal deleted":  {func(d string) error { return os.Remove(filepath.Join(d, journalFile)) }, "was moved or deleted"},
		"journal replaced": {func(d string) error { return replaceFile(filepath.Join(d, journalFile), []byte("mine now\n")) }, "was replaced by another file"},
		"owner deleted":    {func(d string) error { return os.Remove(filepath.Join(d, ownerFile)) }, "journal.owner was removed"},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteBegan}); err != nil {
				t.Fatal(err)
			}
			if err := c.hurt(run.Dir()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteEnded}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("appended: %v", err)
				}
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			if name == "moved" {
				at, err := Open(run.Dir() + "-old")
				if err != nil {
					t.Fatal(err)
				}
				if j := journal(t, at); len(j.Records) != 1 || len(j.Notes) != 0 {
					t.Errorf("%d records, %q", len(j.Records), j.Notes)
				}
				if w, err := at.OpenWriter("kim"); err != nil {
					t.Errorf("in its new place: %v", err)
				} else if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// What is no journal is refused at once; nothing hangs, and nothing is begun
// anew under the old name.
func TestJournalThatIsNone(t *testing.T) {
	for name, c := range map[string]struct {
		make        func(path string) error
		read, write string // parts of the errors; read "" = readable
		note        string
	}{
		"missing":   {func(string) error { return nil }, "", "journal.jsonl is missing: what this run recorded is lost or was moved", "nothing recorded: journal.jsonl is missing"},
		"directory": {func(p string) error { return os.Mkdir(p, 0o755) }, "is no plain file (a directory)", "is a directory, not a plain file", ""},
		"FIFO":      {func(p string) error { return syscall.Mkfifo(p, 0o644) }, "is no plain file (a FIFO)", "is a FIFO, not a plain file", ""},
		"device":    {func(p string) error { return os.Symlink("/dev/zero", p) }, "is no plain file (a device)", "is a symbolic link, not a plain file", ""},
		"dangling":  {func(p string) error { return os.Symlink("nowhere", p) }, "", "is a symbolic link", "nothing recorded"},
		"loop":      {func(p string) error { return os.Symlink(journalFile, p) }, "too many levels", "is a symbolic link", ""},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			path := filepath.Join(run.Dir(), journalFile)
			if err := errors.Join(os.Remove(path), c.make(path)); err != nil {
				t.Fatal(err)
			}
			j, err := run.Journal()
			if (c.read == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.read) {
				t.Errorf("read: %v", err)
			}
			if c.note != "" && !strings.Contains(fmt.Sprint(j.Notes), c.note) {
				t.Errorf("notes %q", j.Notes)
			}
			if _, err := run.OpenWriter("kim"); err == nil || !strings.Contains(err.Error(), c.write) {
				t.Errorf("write: %v", err)
			}
			if _, held := run.HeldBy(); held {
				t.Error("the refused writer still holds the run")
			}
		})
	}
	for _, file := range []string{metaFile, planFile, ownerFile, lockFile} {
		t.Run("FIFO as "+file, func(t *testing.T) {
			run := newRun(t)
			path := filepath.Join(run.Dir(), file)
			_ = os.Remove(path) // some are not there
			if err := syscall.Mkfifo(path, 0o644); err != nil {
				t.Fatal(err)
			}
			again, err := Open(run.Dir())
			if err == nil {
				_, err = again.State()
			}
			if err == nil {
				_, err = again.OpenWriter("kim")
			}
			if err == nil || !strings.Contains(err.Error(), "plain file") {
				t.Error(err)
			}
		})
	}
}
