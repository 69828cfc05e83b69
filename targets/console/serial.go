package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Serial is a serial port of the controller. It is used by nobody else
// meanwhile: by a UUCP lock file, which minicom and picocom know, by flock(2),
// and by TIOCEXCL (ioctl_tty(2)).
type Serial struct {
	Device string `hcl:"device" doc:"device file; /dev/serial/by-id/… stays the same when cables are plugged again"`
	Line
	lockDir string // "" = /run/lock
}

// Check touches nothing.
func (c *Serial) Check() error {
	if !strings.HasPrefix(c.Device, "/") {
		return fmt.Errorf("device = %q: want an absolute path, such as /dev/serial/by-id/usb-…", c.Device)
	}
	_, err := c.parse()
	return err
}

// Open locks the port, sets it and throws away what it had received before.
func (c *Serial) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	f, err := c.parse()
	if err != nil {
		return nil, err
	}
	device, err := filepath.EvalSymlinks(c.Device)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("serial port %s is not there: is its adapter plugged in?", c.Device)
	}
	if err != nil {
		return nil, fmt.Errorf("serial port: %w", err)
	}
	dir := c.lockDir
	if dir == "" {
		dir = "/run/lock"
	}
	release, err := lockPort(dir, device)
	if err != nil {
		return nil, err
	}
	p, err := openPort(device, c.Line, f)
	if err != nil {
		release()
		return nil, err
	}
	p.release = release
	return p, nil
}

// openPort opens and sets a port that is locked by its file already.
func openPort(device string, l Line, f format) (*serialPort, error) {
	file, err := os.OpenFile(device, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.EBUSY):
		return nil, inUse(device, holderOf(device))
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("serial port: %w: is this user in the device's group (dialout)?", err)
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EIO):
		return nil, fmt.Errorf("serial port: %w: there is no hardware behind it", err)
	case err != nil:
		return nil, fmt.Errorf("serial port: %w", err)
	}
	p := &serialPort{File: file, device: device}
	err = p.control(func(fd int) error {
		if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return inUse(device, holderOf(device))
		}
		if err := unix.IoctlSetInt(fd, unix.TIOCEXCL, 0); err != nil {
			return fmt.Errorf("%s is no serial port: %w", device, err)
		}
		return setPort(fd, l, f)
	})
	if err != nil {
		_ = file.Close() // nothing was written
		return nil, err
	}
	return p, nil
}

// off says that two speeds differ by more than the 3 % that a UART bears.
func off(got, want int) bool { return got*100 < want*97 || got*100 > want*103 }

// serialPort is an open port. The file's reads and writes have deadlines, and
// its Close ends them.
type serialPort struct {
	*os.File
	device  string
	release func()
}

// control runs f on the descriptor.
func (p *serialPort) control(f func(fd int) error) error {
	raw, err := p.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func (p *serialPort) Read(b []byte) (int, error) {
	n, err := p.File.Read(b)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EIO) {
		err = fmt.Errorf("serial port %s has gone: was its adapter unplugged? %w", p.device, io.EOF)
	}
	return n, err
}

func (p *serialPort) Write(b []byte) (int, error) {
	_ = p.SetWriteDeadline(time.Now().Add(writeTime)) // without one it would wait for flow control
	n, err := p.File.Write(b)
	return n, stuck(err)
}

// Break holds the line low for breakTime.
func (p *serialPort) Break(ctx context.Context) error {
	set := func(request uint) error {
		if err := p.control(func(fd int) error { return unix.IoctlSetInt(fd, request, 0) }); err != nil {
			return fmt.Errorf("break on %s: %w", p.device, err)
		}
		return nil
	}
	if err := set(unix.TIOCSBRK); err != nil {
		return err
	}
	err := pause(ctx, breakTime)
	return errors.Join(err, set(unix.TIOCCBRK)) // never left on
}

// Close ends a waiting read and gives the port back.
func (p *serialPort) Close() error {
	err := p.File.Close()
	if !errors.Is(err, os.ErrClosed) {
		p.release()
	}
	return err
}
