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

// diskError says that the run directory cannot be written, or that the controller
// has no descriptor left: its own trouble, and no target's. It stops the run.
type diskError struct{ err error }

func (e *diskError) Error() string {
	if outOfFiles(e.err) {
		return fmt.Sprintf("the controller may open no more files: %v; raise the limit (ulimit -n), then kernsweep resume goes on", e.err)
	}
	return fmt.Sprintf("the run directory cannot be written: %v; make room, or make it writable, then kernsweep resume goes on", e.err)
}

// outOfFiles says that this process or this machine has no descriptor left. No
// target can cause that.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func (e *diskError) Unwrap() error { return e.err }

// diskTrouble is err as a *diskError when a file below dir could not be written,
// or no file at all can be opened, nil for anything else: a console's device has
// errors of the same numbers, and a target's full disk comes as text.
func diskTrouble(err error, dir string) error {
	if outOfFiles(err) {
		return &diskError{err}
	}
	var file *fs.PathError
	if !errors.As(err, &file) || !strings.HasPrefix(file.Path, dir) {
		return nil
	}
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.ESTALE,
		syscall.EACCES, syscall.EPERM, syscall.EFBIG} {
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
