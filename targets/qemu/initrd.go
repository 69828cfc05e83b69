package qemu

import (
	"fmt"
	"os"

	"kernsweep/targets"
)

// openInitrd joins an image's initial RAM disks in memory. It gives nil where
// there is none. The caller closes the file.
func openInitrd(i targets.Image) (*os.File, error) {
	if i.Initrd == "" {
		return nil, nil
	}
	out, err := memoryFile("initrd")
	if err != nil {
		return nil, err
	}
	if err := i.WriteInitrd(out); err != nil {
		out.Close()
		return nil, fmt.Errorf("%w (scripts/lab makes the virtual lab's images)", err)
	}
	return out, nil
}
