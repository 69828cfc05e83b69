package console

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// holder is a process that has a port open.
type holder struct {
	pid     int // 0: not known
	program string
}

func inUse(device string, h holder) error {
	switch {
	case h.pid == os.Getpid():
		return fmt.Errorf("serial port %s is in use by this kernsweep already: do two targets name it?", device)
	case h.pid == 0:
		return fmt.Errorf("serial port %s is in use by another process, which this user may not see (sudo fuser -v %s names it)", device, device)
	}
	return fmt.Errorf("serial port %s is in use by process %d (%s): end it first", device, h.pid, h.program)
}

// lockPort makes the UUCP lock file of a port (Filesystem Hierarchy Standard,
// /var/lock: LCK..NAME with the pid in ten characters). A file whose process is
// gone is taken over. Where the folder cannot be written, flock and TIOCEXCL
// have to do.
func lockPort(dir, device string) (release func(), err error) {
	name := strings.ReplaceAll(strings.TrimPrefix(device, "/dev/"), "/", "_")
	path := filepath.Join(dir, "LCK.."+name)
	if h := holderOf(device); h.pid != 0 && h.pid != os.Getpid() {
		return nil, inUse(device, h) // also by who knows no locks: screen, a getty
	}
	mine, err := os.CreateTemp(dir, ".kernsweep-")
	if err != nil {
		return func() {}, nil
	}
	defer os.Remove(mine.Name())
	_, err = fmt.Fprintf(mine, "%10d\n", os.Getpid())
	if err = errors.Join(err, mine.Chmod(0o644), mine.Close()); err != nil {
		return nil, fmt.Errorf("lock of serial port %s: %w", device, err)
	}
	for range 3 { // another may take a stale lock over at the same time
		err = os.Link(mine.Name(), path)
		if err == nil {
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, os.ErrExist) {
			break
		}
		if h, alive := lockHolder(path); alive {
			return nil, fmt.Errorf("%w; its lock is %s", inUse(device, h), path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("lock of serial port %s: its process is gone and the file cannot be removed: %w", device, err)
		}
	}
	return nil, fmt.Errorf("lock of serial port %s: %w", device, err)
}

// lockHolder reads a lock file: text, or the four bytes of old programs. One
// that cannot be understood is nobody's.
func lockHolder(path string) (h holder, alive bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return holder{}, false
	}
	word, _, _ := strings.Cut(strings.TrimSpace(string(b))+" ", " ")
	pid, err := strconv.Atoi(word)
	if err != nil && len(b) == 4 {
		pid = int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
	}
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return holder{}, false
	}
	return holder{pid, programOf(pid)}, true
}

// holderOf finds a process that has the device open, of those that this user
// may look into; another process first, and this one else.
func holderOf(device string) (h holder) {
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*") // a pattern that is right
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || to != device {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(fd, "/")[2])
		if err != nil {
			continue
		}
		h = holder{pid, programOf(pid)}
		if pid != os.Getpid() {
			return h
		}
	}
	return h
}

func programOf(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return "its name is not to be seen"
	}
	return strings.TrimSpace(string(b))
}
