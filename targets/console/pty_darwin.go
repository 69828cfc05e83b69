package console

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openPTY makes a terminal in raw mode. Its master is opened once more without
// blocking, so that it has deadlines, with which a read can be ended.
func openPTY() (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("a terminal for the program: %w", err)
	}
	defer blocking.Close() // master has its own descriptor
	_, err = term.MakeRaw(int(slave.Fd()))
	var fd int
	if err == nil {
		fd, err = unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	}
	if err == nil {
		if err = syscall.SetNonblock(fd, true); err == nil {
			return os.NewFile(uintptr(fd), blocking.Name()), slave, nil
		}
		err = errors.Join(err, unix.Close(fd))
	}
	_ = slave.Close() // nothing was read
	return nil, nil, fmt.Errorf("a terminal for the program: %w", err)
}
