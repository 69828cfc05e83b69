package private

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFolder(t *testing.T) {
	top := t.TempDir()
	open, link, file := filepath.Join(top, "open"), filepath.Join(top, "link"), filepath.Join(top, "file")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(open, 0o777), os.Symlink(open, link), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{open, filepath.Join(top, "new")} {
		dir, err := Folder(at)
		if err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(at); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", at, st.Mode(), err)
		}
		dir.Close()
	}
	for at, want := range map[string]error{link: unix.ENOTDIR, file: unix.ENOTDIR, filepath.Join(top, "no", "new"): fs.ErrNotExist} {
		if dir, err := Folder(at); !errors.Is(err, want) && !errors.Is(err, unix.ELOOP) {
			t.Errorf("%s: %v, %v", at, dir, err)
		}
	}
}

// A folder's path may be longer than a socket's.
func TestSocket(t *testing.T) {
	at := filepath.Join(t.TempDir(), strings.Repeat("x", 200))
	dir, err := Folder(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	l, err := net.Listen("unix", Socket(dir, "a.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := os.Stat(filepath.Join(at, "a.sock")); err != nil {
		t.Error(err)
	}
}
