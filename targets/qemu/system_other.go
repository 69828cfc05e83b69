//go:build !linux

package qemu

import (
	"errors"
	"os"
	"syscall"
)

// canGuard says why a guest could outlive a controller that was killed.
func canGuard() error {
	return errors.New("a target in QEMU needs Linux: elsewhere a guest would go on when its controller is killed; run kernsweep on a Linux machine, or leave this target out with --target")
}

// endsWithUs is never asked where canGuard refuses.
func endsWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func memoryFile(string) (*os.File, error) { return nil, canGuard() }

func connected() (none [2]int, _ error) { return none, canGuard() }

func peerPID(int) (int, error) { return 0, canGuard() }
