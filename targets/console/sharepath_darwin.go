package console

import (
	"os"
	"path/filepath"
)

// socketPath names a socket. One whose path is longer than the 103 bytes that
// unix(4) has room for is not made: then the console is not shared, with a note.
func socketPath(dir *os.File, target string) string {
	return filepath.Join(dir.Name(), target+".sock")
}
