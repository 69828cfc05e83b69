package agent

import (
	"strconv"
	"syscall"
	"time"
	_ "unsafe" // for linkname
)

// These stand in for package os, which would make the agent a fifth larger.

// Args are the program's arguments without its name.
func Args() []string {
	if a := runtimeArgs(); len(a) > 1 {
		return a[1:]
	}
	return nil
}

//go:linkname runtimeArgs os.runtime_args
func runtimeArgs() []string

// readFile reads a whole file.
func readFile(path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, failure(path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, 1024)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, failure(path + ": " + err.Error())
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}

// listDir lists the names in a directory; what could be read of it is returned.
func listDir(path string) []string {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var names []string
	buf := make([]byte, 4096)
	for {
		n, err := syscall.ReadDirent(fd, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return names
		}
		for b := buf[:n]; len(b) > 0; {
			used, _, more := syscall.ParseDirent(b, -1, names)
			b, names = b[used:], more
		}
	}
}

// readLink returns what a symbolic link points to, "" on any error.
func readLink(path string) string {
	buf := make([]byte, 128)
	n, err := syscall.Readlink(path, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

func getenv(key string) string {
	v, _ := syscall.Getenv(key)
	return v
}

// clocks are CLOCK_MONOTONIC and the machine's idea of the time of day, in Unix
// nanoseconds as text, "" when it has none. Both are of one moment: a pair that
// something came between is taken again.
func clocks() (mono int64, wall string) {
	for range 8 {
		var tv syscall.Timeval
		before := Now()
		if syscall.Gettimeofday(&tv) != nil {
			return before, ""
		}
		mono, wall = before, itoa(int64(tv.Sec)*1e9+int64(tv.Usec)*1e3)
		if Now()-before < int64(time.Millisecond) {
			break
		}
	}
	return mono, wall
}

// pause waits for ns nanoseconds, in a wait for what sends no event.
func pause(ns int64) {
	ts := syscall.NsecToTimespec(ns)
	syscall.Nanosleep(&ts, nil)
}

func self() string { return strconv.Itoa(syscall.Getpid()) }
