package orchestrator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"kernsweep/targets"
)

func TestDiskTroubleIsTheRunsOwn(t *testing.T) {
	full := fmt.Errorf("spool: %w", &fs.PathError{Op: "write", Path: "/runs/r1/t/boot-001/x/spool", Err: syscall.ENOSPC})
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a full disk of the runs":    {full, true},
		"it turned read-only":        {&fs.PathError{Op: "mkdir", Path: "/runs/r1/t", Err: syscall.EROFS}, true},
		"a serial port that went":    {&fs.PathError{Op: "read", Path: "/dev/ttyUSB0", Err: syscall.EIO}, false},
		"the target's disk":          {errors.New("cp: write error: No space left on device"), false},
		"a file that is not there":   {&fs.PathError{Op: "open", Path: "/runs/r1/x", Err: syscall.ENOENT}, false},
		"an errno of no file":        {syscall.ENOSPC, false},
		"a socket's error":           {syscall.ECONNRESET, false},
		"a folder that was closed":   {&fs.PathError{Op: "mkdir", Path: "/runs/r1/t/boot-002", Err: syscall.EACCES}, true},
		"a limit of files' sizes":    {&fs.PathError{Op: "write", Path: "/runs/r1/t/spool", Err: syscall.EFBIG}, true},
		"a program that may not run": {&fs.PathError{Op: "fork/exec", Path: "/lab/boot.sh", Err: syscall.EACCES}, false},
		"no descriptor for a boot":   {fmt.Errorf("could not start: %w", &fs.PathError{Op: "fork/exec", Path: "/lab/boot.sh", Err: syscall.EMFILE}), true},
		"none for a link":            {&targets.LinkError{Phase: "connect", Err: os.NewSyscallError("socket", syscall.EMFILE)}, true},
		"nothing":                    {nil, false},
	} {
		if got := diskTrouble(c.err, "/runs/r1"); (got != nil) != c.want {
			t.Errorf("%s: %v", name, got)
		} else if got != nil && !errors.Is(got, errors.Unwrap(got)) {
			t.Errorf("%s: the cause is lost: %v", name, got)
		}
	}
}
