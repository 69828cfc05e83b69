package leases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// EnvFolder names the environment variable that names the folder.
const EnvFolder = "KERNSWEEP_LEASES"

// Folder holds the leases of a machine, or of several that share it.
type Folder struct {
	dir     string
	times   times
	clock   clock
	machine machine
	flock   func(fd, how int) error // flock(2); tests put others here
}

// Find names the folder: what the environment variable KERNSWEEP_LEASES says,
// else kernsweep in /run/lock or /var/lock, else kernsweep-leases in the folder
// for temporary files. One that does not exist is only chosen where every user
// could make it, root included: two users must never look in different places.
func Find(env func(string) (string, bool)) string {
	if dir, ok := env(EnvFolder); ok && dir != "" {
		return dir
	}
	return find([]string{"/run/lock/kernsweep", "/var/lock/kernsweep", "/tmp/kernsweep-leases"})
}

func find(places []string) string {
	for _, dir := range places {
		if st, err := os.Stat(dir); err == nil && st.IsDir() && st.Mode().Perm()&0o002 != 0 {
			return dir
		}
	}
	for _, dir := range places {
		if st, err := os.Stat(filepath.Dir(dir)); err == nil && st.IsDir() && st.Mode().Perm()&0o002 != 0 {
			return dir
		}
	}
	return filepath.Join(os.TempDir(), "kernsweep-leases")
}

// Open makes the folder when it is not there and tries that it can be used. Its
// error says what to do.
func Open(dir string) (*Folder, error) {
	f := &Folder{dir: dir, times: usualTimes(), clock: realClock(), machine: thisMachine(), flock: syscall.Flock}
	if abs, err := filepath.Abs(dir); err == nil {
		f.dir = abs
	}
	if err := f.make(); err != nil {
		return nil, err
	}
	return f, nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// fail says what went wrong in the folder, and what helps.
func (f *Folder) fail(err error) error {
	help := "name a folder of its own that every user may write (mode 0777, no sticky bit), the same for all, by " + EnvFolder
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		help = "make room there, or " + help
	}
	return fmt.Errorf("the folder of the leases, %s, cannot be used: %w; %s", f.dir, err, help)
}

// make creates the folder with mode 0777 whatever the umask, in one step: nobody
// ever meets one that he may not use yet. It has no sticky bit, so that a lease
// that another user left can be replaced.
func (f *Folder) make() error {
	st, err := os.Lstat(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := f.create(); err != nil {
			return f.fail(err)
		}
		st, err = os.Lstat(f.dir)
	}
	if err != nil {
		return f.fail(err)
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		return f.fail(errors.New("it is a symbolic link, which anybody may have put there"))
	}
	if !st.IsDir() {
		return f.fail(errors.New("it is no folder"))
	}
	if st.Mode()&fs.ModeSticky != 0 {
		return f.fail(errors.New("it has the sticky bit, so a lease that another user left there cannot be replaced"))
	}
	if err := unix.Access(f.dir, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		return f.fail(err)
	}
	return nil
}

func (f *Folder) create() error {
	parent := filepath.Dir(f.dir)
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, ".kernsweep-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp) // gone already when all went well
	if err := os.Chmod(tmp, 0o777); err != nil {
		return err
	}
	err = renameNew(tmp, f.dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil // another process was faster
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOSYS): // a file system without it
		if err = os.Mkdir(f.dir, 0o777); errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err == nil {
			err = os.Chmod(f.dir, 0o777)
		}
	}
	return err
}

// bootSeconds is d as records write it.
func bootSeconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
