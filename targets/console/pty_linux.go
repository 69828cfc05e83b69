package console

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// openPTY makes a terminal in raw mode (pty(7)). Unlike those of libraries its
// master has deadlines, so that a read can be ended.
func openPTY() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	raw, err := master.SyscallConn()
	var number int
	var inner error
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if inner = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); inner == nil {
				number, inner = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
	}
	if err = errors.Join(err, inner); err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		_, err = term.MakeRaw(int(slave.Fd()))
	}
	if err != nil {
		_ = master.Close() // nothing was read
		if slave != nil {
			_ = slave.Close()
		}
		return nil, nil, fmt.Errorf("a terminal for the program: %w", err)
	}
	return master, slave, nil
}
