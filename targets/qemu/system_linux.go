package qemu

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// canGuard says why a guest could outlive a controller that was killed.
func canGuard() error { return nil }

// endsWithUs is for a process that is in a group of its own and ends when its
// starter does, however that ends (prctl(2): PR_SET_PDEATHSIG).
func endsWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// memoryFile makes a file that lies on no disk.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("%s: memfd_create: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// connected makes two sockets that are connected, for no child to inherit.
func connected() ([2]int, error) {
	return unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// peerPID is the process at the other end of a Unix socket.
func peerPID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
