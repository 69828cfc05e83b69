package agent

import (
	"runtime"
	"strconv"
	"syscall"
)

func goarch() string { return runtime.GOARCH }

func testClock() error {
	a := Now()
	for i := 0; Now() <= a; i++ {
		if i > 1_000_000 {
			return failure("CLOCK_MONOTONIC stands still")
		}
	}
	return nil
}

// testFloat computes with values the compiler cannot know.
func testFloat() error {
	sum := 0.0
	for i := range 100 {
		sum += float64(i+syscall.Getpid()-syscall.Getpid()) * 0.5
	}
	if sum != 2475 {
		return failure("0.5 * (0 + … + 99) gives " + strconv.FormatFloat(sum, 'g', -1, 64))
	}
	return nil
}

func testProc() error {
	if p, ok := readProc(syscall.Getpid()); !ok || p.pid != syscall.Getpid() {
		return failure("/proc/self/stat cannot be read (is /proc mounted?)")
	}
	if oneLine("/proc/stat") == "" {
		return failure("/proc/stat cannot be read")
	}
	return nil
}

func testSpool() error {
	f, err := createSpool("")
	if err != nil {
		return err
	}
	defer removeSpool(f.path)
	defer syscall.Close(f.fd)
	_, err = f.Write([]byte("test\n"))
	return err
}

// testSocket opens a listener on loopback and accepts once: old kernels lack
// accept4, which shows nowhere earlier.
func testSocket() error {
	l, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return failure("socket: " + err.Error())
	}
	defer syscall.Close(l)
	if err := syscall.Bind(l, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return failure("bind 127.0.0.1: " + err.Error() + " (is the interface lo up?)")
	}
	if err := syscall.Listen(l, 1); err != nil {
		return failure("listen: " + err.Error())
	}
	addr, err := syscall.Getsockname(l)
	if err != nil {
		return failure("getsockname: " + err.Error())
	}
	c, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return failure("socket: " + err.Error())
	}
	defer syscall.Close(c)
	if err := syscall.Connect(c, addr); err != nil {
		return failure("connect 127.0.0.1: " + err.Error())
	}
	a, _, err := syscall.Accept4(l, syscall.SOCK_CLOEXEC)
	if err != nil {
		return failure("accept4: " + err.Error())
	}
	return syscall.Close(a)
}

// testProcess runs this program once more on another thread and reaps it.
func testProcess() error {
	done := make(chan error)
	go func() {
		pid, err := syscall.ForkExec(selfPath(), []string{"kernsweep-agent", "child", "true"}, &syscall.ProcAttr{
			Env: syscall.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true}})
		var ws syscall.WaitStatus
		if err == nil {
			_, err = syscall.Wait4(pid, &ws, 0, nil)
		}
		if err == nil && ws.ExitStatus() != 0 {
			err = failure("a second agent exits with status " + strconv.Itoa(ws.ExitStatus()))
		}
		done <- err
	}()
	return <-done
}
