//go:build !linux

package control

import (
	"os"
	"path/filepath"
)

// inFolder names a socket; a folder with a long path has none.
func inFolder(dir *os.File, name string) string { return filepath.Join(dir.Name(), name) }
