package console

import (
	"fmt"
	"os"
)

// socketPath names a socket through the open folder: a socket's path is at most
// 107 bytes long (unix(7)), and the folder's may be longer.
func socketPath(dir *os.File, target string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s.sock", dir.Fd(), target)
}
