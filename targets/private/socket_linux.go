package private

import (
	"fmt"
	"os"
)

// Socket names a socket through its open folder, as long as that stays open: a
// socket's path is at most 107 bytes long (unix(7)), and the folder's may be longer.
func Socket(dir *os.File, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}
