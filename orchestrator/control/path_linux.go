package control

import (
	"fmt"
	"os"
)

// inFolder names a socket through the open folder: a socket's path is at most 107
// bytes long (unix(7)), and the folder's may be longer.
func inFolder(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}
