//go:build amd64 || arm64 || riscv64

package agent

import (
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// Flags of kexec_file_load(2).
const (
	kexecFileUnload      = 1
	kexecFileNoInitramfs = 4
)

// nrKexecFileLoad is the system call's number; 32-bit kernels have none.
func nrKexecFileLoad() uintptr {
	if runtime.GOARCH == "amd64" {
		return 320
	}
	return 294 // the generic table: arm64, riscv64
}

// kexec loads a kernel, or starts the one that is loaded (kexec_file_load(2),
// reboot(2)). A failed system call is named with its number, for its text says
// little about kexec.
func kexec(args []string) int {
	switch {
	case len(args) == 4 && args[0] == "load":
		return kexecLoad(args[1], args[2], args[3])
	case len(args) == 1 && args[0] == "jump":
		e, _ := syscall.Reboot(syscall.LINUX_REBOOT_CMD_KEXEC).(syscall.Errno) // it returns only when it failed
		return kexecFailed("reboot", e)
	}
	return die(failure("usage: agent kexec load KERNEL INITRD|- CMDLINE, or agent kexec jump"))
}

func kexecLoad(kernel, initrd, cmdline string) int {
	k, err := syscall.Open(kernel, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return die(failure(kernel + ": " + err.Error()))
	}
	i, flags := 0, uintptr(kexecFileNoInitramfs)
	if initrd != "-" {
		if i, err = syscall.Open(initrd, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
			return die(failure(initrd + ": " + err.Error()))
		}
		flags = 0
	}
	line := append([]byte(cmdline), 0)
	// What an earlier boot has loaded takes memory; a failure here comes again below.
	_, _, _ = syscall.Syscall6(nrKexecFileLoad(), 0, 0, 0, 0, kexecFileUnload, 0)
	_, _, e := syscall.Syscall6(nrKexecFileLoad(), uintptr(k), uintptr(i), uintptr(len(line)),
		uintptr(unsafe.Pointer(&line[0])), flags, 0)
	if e != 0 {
		return kexecFailed("kexec_file_load", e)
	}
	return 0
}

func kexecFailed(call string, e syscall.Errno) int {
	return die(failure(call + ": errno " + strconv.Itoa(int(e)) + " (" + e.Error() + ")"))
}
