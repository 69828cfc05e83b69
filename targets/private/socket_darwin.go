package private

import (
	"os"
	"path/filepath"
)

// Socket names a socket in its open folder. One whose path is longer than the 103
// bytes that unix(4) has room for cannot be made: whoever makes it is told.
func Socket(dir *os.File, name string) string { return filepath.Join(dir.Name(), name) }
