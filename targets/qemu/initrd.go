package qemu

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openInitrd joins the comma-separated files of an initial RAM disk in memory,
// each padded to 4 bytes as the kernel asks of concatenated archives. It gives
// nil for "". The caller closes the file.
func openInitrd(paths string) (*os.File, error) {
	if paths == "" {
		return nil, nil
	}
	fd, err := unix.MemfdCreate("initrd", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("initrd: memfd_create: %w", err)
	}
	out := os.NewFile(uintptr(fd), "initrd")
	for _, path := range strings.Split(paths, ",") {
		if err := appendPadded(out, strings.TrimSpace(path)); err != nil {
			out.Close()
			return nil, fmt.Errorf("initrd: %w (scripts/lab makes the virtual lab's images)", err)
		}
	}
	return out, nil
}

func appendPadded(out *os.File, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := io.Copy(out, in)
	if err != nil {
		return err
	}
	_, err = out.Write(make([]byte, (4-n%4)%4))
	return err
}
