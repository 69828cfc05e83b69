package targets

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// WriteInitrd writes the image's initial RAM disks one after another, each padded
// to 4 bytes as the kernel asks of concatenated archives (kernel
// Documentation/driver-api/early-userspace/buffer-format.rst).
func (i Image) WriteInitrd(w io.Writer) error {
	for path := range strings.SplitSeq(i.Initrd, ",") {
		if path = strings.TrimSpace(path); path == "" {
			continue
		}
		if err := appendPadded(w, path); err != nil {
			return fmt.Errorf("initrd: %w", err)
		}
	}
	return nil
}

func appendPadded(w io.Writer, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	n, err := io.Copy(w, in)
	if err != nil {
		return err
	}
	_, err = w.Write(make([]byte, (4-n%4)%4))
	return err
}
