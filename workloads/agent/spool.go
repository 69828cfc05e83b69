package agent

import (
	"strconv"
	"strings"
	"syscall"

	"kernsweep/workloads/wire"
)

// spoolFile is the spool on disk, written with raw calls.
type spoolFile struct {
	fd   int
	path string
	size int64
}

// reserve is kept in a file of its own, and given back before the end record is
// written, so that a full file system cannot swallow it.
const reserve = 8 << 10

// createSpool creates the file and its reserve. An empty path means a new file
// in the first directory that will take it, memory-backed ones first.
func createSpool(path string) (*spoolFile, error) {
	paths := []string{path}
	if path == "" {
		name := "/kernsweep-" + self() + ".spool"
		paths = []string{"/dev/shm" + name, "/tmp" + name, "/var/tmp" + name, "/run" + name}
	}
	var first error
	for _, p := range paths {
		fd, err := syscall.Open(p, syscall.O_CREAT|syscall.O_EXCL|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			err = writeReserve(p)
			if err == nil {
				return &spoolFile{fd: fd, path: p}, nil
			}
			syscall.Close(fd)
			syscall.Unlink(p)
		}
		if first == nil {
			first = failure("spool " + p + ": " + err.Error())
		}
	}
	return nil, first
}

func writeReserve(path string) error {
	fd, err := syscall.Open(path+".reserve", syscall.O_CREAT|syscall.O_EXCL|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_, err = writeAll(fd, make([]byte, reserve))
	return err
}

func (f *spoolFile) Write(b []byte) (int, error) {
	n, err := writeAll(f.fd, b)
	if err != nil && syscall.Ftruncate(f.fd, f.size) == nil {
		// Half a record would make everything after it unreadable.
		syscall.Seek(f.fd, f.size, 0)
		n = 0
	}
	f.size += int64(n)
	return n, err
}

// release gives the reserve back.
func (f *spoolFile) release() { syscall.Unlink(f.path + ".reserve") }

// writeAll writes all of b to fd.
func writeAll(fd int, b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := syscall.Write(fd, b[done:])
		if n > 0 {
			done += n
		}
		switch err {
		case nil, syscall.EINTR:
		case syscall.EAGAIN:
			if err := syscall.SetNonblock(fd, false); err != nil {
				return done, err
			}
		default:
			return done, err
		}
	}
	return done, nil
}

// printFile copies a spool to stdout.
func printFile(path string) error {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return failure(path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	buf := make([]byte, 32<<10)
	for {
		n, err := syscall.Read(fd, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return failure(path + ": " + err.Error())
		}
		if n == 0 {
			return nil
		}
		if _, err := writeAll(1, buf[:n]); err != nil {
			return failure("stdout: " + err.Error() + "; the spool stays in " + path)
		}
	}
}

// removeSpool removes a spool and what belongs to it.
func removeSpool(path string) {
	syscall.Unlink(path)
	syscall.Unlink(path + ".reserve")
}

// endOf reads the end record of a spool, nil when it is not complete. Nothing is
// written after an end record, so it begins the last few hundred bytes' last record.
func endOf(path string) map[string]string {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	size, err := syscall.Seek(fd, 0, 2)
	if err != nil {
		return nil
	}
	tail := make([]byte, min(size, 8<<10))
	n, err := syscall.Pread(fd, tail, size-int64(len(tail)))
	if err != nil {
		return nil
	}
	s := string(tail[:n])
	for {
		i := strings.LastIndex(s, "\nend ")
		if i < 0 {
			return nil
		}
		if body, ok := onlyRecord(string(tail[i+1 : n])); ok {
			return wire.Pairs([]byte(body))
		}
		s = s[:i]
	}
}

// onlyRecord is the body of the record that s consists of.
func onlyRecord(s string) (body string, ok bool) {
	head, body, ok := strings.Cut(s, "\n")
	f := strings.Fields(head)
	if !ok || len(f) < 3 {
		return "", false
	}
	n, err := strconv.Atoi(f[2])
	return body, err == nil && len(body) == n+1
}
