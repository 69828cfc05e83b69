package leases

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew moves a file or folder to a name that nothing has yet: else the error
// is fs.ErrExist. A file system that cannot says so as Linux does.
func renameNew(from, to string) error {
	err := unix.RenamexNp(from, to, unix.RENAME_EXCL)
	if errors.Is(err, syscall.ENOTSUP) {
		return syscall.ENOSYS
	}
	return err
}

// changed is when a file was written last, in ns.
func changed(st *syscall.Stat_t) int64 { return st.Mtimespec.Nano() }

// sinceBoot goes on while the machine sleeps, as this clock does here (clock_gettime(3)).
func sinceBoot() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // every macOS has it
	return time.Duration(ts.Nano())
}
