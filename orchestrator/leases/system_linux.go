package leases

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// renameNew moves a file or folder to a name that nothing has yet: else the error
// is fs.ErrExist.
func renameNew(from, to string) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
}

// changed is when a file was written last, in ns.
func changed(st *syscall.Stat_t) int64 { return st.Mtim.Nano() }

// sinceBoot is CLOCK_BOOTTIME, which goes on while the machine sleeps.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // kernels before 2.6.39 have only this
	}
	return time.Duration(ts.Nano())
}
