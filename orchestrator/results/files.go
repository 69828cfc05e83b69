package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/google/renameio/v2"
)

// replaceFile writes data beside path, renames it into place and makes both the
// data and the name durable.
func replaceFile(path string, data []byte) error {
	dir := filepath.Dir(path) // not $TMPDIR, where nobody looks for what a kill leaves
	if err := renameio.WriteFile(path, data, 0o644, renameio.WithStaticPermissions(0o644), renameio.WithTempDir(dir)); err != nil {
		return err
	}
	return syncDir(dir)
}

// halfWritten are the names that files of a run directory have while they are written.
var halfWritten = regexp.MustCompile(`^\.(?:run\.json|plan\.json|session-\d+\.json|kept\.json|testbeds\.hcl|journal\.jsonl|report\.txt)\d+$`)

// removeHalfWritten removes what a writer that was killed left. The run's lock is held.
func removeHalfWritten(dir string) {
	for _, half := range []string{"*/boot-*/.boot.json?*", "*/boot-*/*/attempt-*/.trial.json?*"} {
		found, _ := filepath.Glob(filepath.Join(globSafe(dir), half)) // the pattern is right
		for _, f := range found {
			_ = os.Remove(f)
		}
	}
	entries, _ := os.ReadDir(dir) // what is not seen stays, and does no harm
	for _, e := range entries {
		if halfWritten.MatchString(e.Name()) && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// writeNew creates path with data, and fails when it exists.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(path) // half a file is worth nothing
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// newDir makes path, which must not exist, and its missing parents.
func newDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// openPlain opens a regular file for reading. It refuses what would hang or
// never end: a FIFO, a device, a directory.
func openPlain(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file (%s)", path, kindOf(info.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// readPlain is os.ReadFile for regular files.
func readPlain(path string) ([]byte, error) {
	f, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
