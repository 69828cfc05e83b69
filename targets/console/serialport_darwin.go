package console

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setPort makes the line raw, sets it, and empties the receiver. Its DTR stays up when the
// port is closed, since some devices reset by it.
func setPort(fd int, l Line, f format) error {
	t, err := unix.IoctlGetTermios(fd, unix.TIOCGETA)
	if err != nil {
		return fmt.Errorf("serial port: reading its settings: %w", err)
	}
	t.Iflag = unix.IGNPAR // a break is a NUL byte, wrong parity is let through
	t.Oflag, t.Lflag = 0, 0
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	if l.Baud == 0 {
		l.Baud = 115200
	}
	if f.data == 0 {
		f = format{8, 'N', 1}
	}
	if f.parity == 'S' || f.parity == 'M' {
		return fmt.Errorf("serial port: parity %c needs Linux: use N, E or O", f.parity)
	}
	t.Cflag = unix.CREAD | unix.CLOCAL | [...]uint64{unix.CS5, unix.CS6, unix.CS7, unix.CS8}[f.data-5] |
		map[byte]uint64{'E': unix.PARENB, 'O': unix.PARENB | unix.PARODD}[f.parity]
	t.Ispeed, t.Ospeed = uint64(l.Baud), uint64(l.Baud) // the speed is its number (termios(4))
	if f.stop == 2 {
		t.Cflag |= unix.CSTOPB
	}
	switch l.Flow {
	case "rtscts":
		t.Cflag |= unix.CRTSCTS
	case "xonxoff":
		t.Iflag |= unix.IXON | unix.IXOFF
		t.Cc[unix.VSTART], t.Cc[unix.VSTOP] = 0x11, 0x13
	}
	if err := unix.IoctlSetTermios(fd, unix.TIOCSETA, t); err != nil {
		return fmt.Errorf("serial port: it does not take %d baud, %d%c%d: %w", l.Baud, f.data, f.parity, f.stop, err)
	}
	if got, err := unix.IoctlGetTermios(fd, unix.TIOCGETA); err == nil && off(int(got.Ospeed), l.Baud) {
		return fmt.Errorf("serial port: it runs at %d baud when told %d", got.Ospeed, l.Baud)
	}
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, receiver) // old bytes belong to no boot
	return nil
}

const receiver = 1 // FREAD of sys/fcntl.h
