package agent

import (
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// ignoreHangup makes the agent survive the end of its session. os/signal would
// pull in context; the runtime restores the default in every started process,
// since it knows nothing of this. A broken pipe needs nothing: raw writes get
// EPIPE and the runtime swallows SIGPIPE.
func ignoreHangup() {
	// struct sigaction holds the handler first, except on MIPS, where the flags
	// come before it. All else is zero. 1 is SIG_IGN.
	var act [8]uintptr
	size := uintptr(8) // of the kernel's sigset_t
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		act[1], size = 1, 16
	} else {
		act[0] = 1
	}
	syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGHUP), uintptr(unsafe.Pointer(&act)), 0, size, 0, 0)
}

// adoptOrphans makes processes that leave the task's group by a double fork
// children of the agent (Linux 3.4), so that it finds and ends them.
func adoptOrphans() {
	const prSetChildSubreaper = 36
	syscall.RawSyscall6(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0, 0, 0, 0)
}
