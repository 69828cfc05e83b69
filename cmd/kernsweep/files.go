package main

import (
	"io"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// replaceFile replaces a file in one step, keeping its permissions.
func replaceFile(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o644, renameio.WithExistingPermissions(), renameio.WithTempDir(filepath.Dir(path)))
}

// writeFileFrom writes what f writes to path, in one step: a failure leaves the
// old file.
func writeFileFrom(path string, f func(io.Writer) error) error {
	p, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644), renameio.WithExistingPermissions(),
		renameio.WithTempDir(filepath.Dir(path))) // not $TMPDIR, where nobody looks for what a kill leaves
	if err != nil {
		return err
	}
	defer func() { _ = p.Cleanup() }()
	if err := f(p); err != nil {
		return err
	}
	return p.CloseAtomicallyReplace()
}
