package leases

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Every user is led to the same folder: one that is there and open to all, else
// one that all could make; what only root could make is none.
func TestFind(t *testing.T) {
	top := t.TempDir()
	dir := func(name string, mode fs.FileMode) string {
		t.Helper()
		p := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(p, 0o755), os.Chmod(p, mode)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	closed, open := dir("closed", 0o755), dir("open", 0o777|fs.ModeSticky)
	later := dir("later", 0o777)
	made := dir("later/made", 0o777)
	for want, places := range map[string][]string{
		filepath.Join(open, "x"): {filepath.Join(closed, "x"), filepath.Join(open, "x"), filepath.Join(later, "x")},
		made:                     {filepath.Join(closed, "x"), filepath.Join(open, "x"), made},
		filepath.Join(os.TempDir(), "kernsweep-leases"): {filepath.Join(closed, "x"), filepath.Join(top, "none", "x")},
	} {
		if got := find(places); got != want {
			t.Errorf("%v: %s, want %s", places, got, want)
		}
	}
	env := func(v string) func(string) (string, bool) {
		return func(name string) (string, bool) { return v, name == EnvFolder }
	}
	if got := Find(env("/somewhere")); got != "/somewhere" {
		t.Error(got)
	}
	if got := Find(env("")); !strings.HasPrefix(got, "/") {
		t.Error(got)
	}
}

// The folder is open to everybody whatever the umask, and one that cannot be is
// refused with what to do.
func TestOpen(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	top := t.TempDir()
	f, err := Open(filepath.Join(top, "a", "l"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.NewKeeper(Holder{Owner: "alice"}, nil).Take(t.Context(), []Want{{"k", "target box"}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{f.Dir(): 0o777, filepath.Join(f.Dir(), mutexFile): 0o666, filepath.Join(f.Dir(), fileOf("k")): 0o666} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode || st.Mode()&fs.ModeSticky != 0 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	for name, make := range map[string]func(string) error{
		"sticky bit":    func(p string) error { return errors.Join(os.Mkdir(p, 0o777), os.Chmod(p, 0o777|fs.ModeSticky)) },
		"symbolic link": func(p string) error { return os.Symlink(f.Dir(), p) },
		"no folder":     func(p string) error { return os.WriteFile(p, nil, 0o666) },
	} {
		p := filepath.Join(top, name)
		if err := make(p); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(p); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), EnvFolder) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := List(filepath.Join(top, "none")); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}
