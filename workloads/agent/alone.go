package agent

import (
	"runtime"
	"syscall"
)

// alone runs f in a forked process that has one thread and nothing of the Go
// runtime beside it: the runtime's monitor thread wakes up to 7,000 times a
// second beside a busy loop (measured on a MIPS guest), which is a load of its
// own. f finds its memory allocated; it may use raw system calls and write to
// descriptors, and must not start anything. Its result is the exit status.
//
// The caller only waits, and takes f's resources into its own account: wait4 of
// the caller covers both.
func alone(f func() int) int {
	growStack()
	// A request to give way that came with the fork would be harmless, for the
	// goroutine is not locked to its thread, but there need be none.
	runtime.Gosched()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return childFailed("fork: " + e.Error())
	}
	if pid == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(f()), 0, 0)
	}
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(int(pid), &ws, 0, nil)
		if err == nil {
			break
		}
		if err != syscall.EINTR {
			return childFailed("wait: " + err.Error())
		}
	}
	if ws.Signaled() {
		syscall.Kill(syscall.Getpid(), ws.Signal()) // end as it ended
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// growStack makes this goroutine's stack large enough for f, so that the fork
// never needs the runtime's allocator for it.
//
//go:noinline
func growStack() byte {
	var b [32 << 10]byte
	for i := range b {
		b[i] = byte(i)
	}
	return b[len(b)/2]
}
