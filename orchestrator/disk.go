package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// diskError says that the run directory cannot be written: the controller's own
// trouble, and nobody else's. It stops the run.
type diskError struct{ err error }

func (e *diskError) Error() string {
	return fmt.Sprintf("the run directory cannot be written: %v; make room or mend the disk, then kernsweep resume goes on", e.err)
}

func (e *diskError) Unwrap() error { return e.err }

// diskTrouble is err as a *diskError when a file below dir could not be written,
// nil for anything else: a console's device has errors of the same numbers, and a
// target's full disk comes as text.
func diskTrouble(err error, dir string) error {
	var file *fs.PathError
	if !errors.As(err, &file) || !strings.HasPrefix(file.Path, dir) {
		return nil
	}
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.ESTALE, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, no) {
			return &diskError{err}
		}
	}
	return nil
}

// disk stops the run when err is the run directory's.
func (r *Runner) disk(err error) error {
	if e := diskTrouble(err, r.Run.Dir()); e != nil {
		r.stop(e)
		return e
	}
	return nil
}

// settleFiles makes what a trial left durable before its verdict is: a verdict
// whose evidence a power cut takes away could not be looked into.
func settleFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() {
			err = errors.Join(err, syncFile(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, syncFile(dir))
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
