// Package private makes Unix sockets that only this user can reach: they lie in a
// folder that nobody else may enter. Who connects is then not asked who he is.
package private

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Folder makes the folder at, below one that is there, unless it exists, and opens
// it. One of somebody else, or a link, is an error; one that others may enter is
// closed to them.
func Folder(at string) (*os.File, error) {
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	dir, err := os.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(dir.Fd()), &st); err == nil && int(st.Uid) != os.Geteuid() {
		err = fmt.Errorf("%s belongs to another user (uid %d)", at, st.Uid)
	}
	if err == nil && st.Mode&0o077 != 0 {
		err = dir.Chmod(0o700)
	}
	if err != nil {
		_ = dir.Close() // nothing was written
		return nil, err
	}
	return dir, nil
}
