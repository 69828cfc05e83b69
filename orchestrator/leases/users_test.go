package leases

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Users of one machine: root made the folder or another did, with whatever umask;
// each gets what the other gave back or died with.
func TestTwoUsers(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root, to be two users")
	}
	top, err := os.MkdirTemp("", "leases-bin")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(top)
	binary := filepath.Join(top, "leases.test") // the build's own folder is not open to others
	if err := errors.Join(os.Chmod(top, 0o755), copyFile(os.Args[0], binary)); err != nil {
		t.Fatal(err)
	}
	as := func(uid uint32) func(*exec.Cmd) {
		return func(c *exec.Cmd) {
			c.Path, c.Dir = binary, "/"
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		}
	}
	for _, uids := range [][2]uint32{{0, 65534}, {65534, 0}, {65534, 65533}} {
		t.Run(fmt.Sprint(uids), func(t *testing.T) {
			dir := folder(t)
			a, b := start(t, dir, "alice", as(uids[0])), start(t, dir, "bob", as(uids[1]))
			a.want("take k l", "won")
			if got := b.ask("take k"); !strings.Contains(got, "held by alice") {
				t.Errorf("%q", got)
			}
			a.want("release", "released <nil>")
			b.want("take k", "won")
			if got := a.ask("take k l"); !strings.Contains(got, "held by bob") {
				t.Errorf("%q", got)
			}
			b.kill()
			if got := a.ask("take k l"); !strings.Contains(got, "won by takeover") || !strings.Contains(got, "bob") {
				t.Errorf("%q", got)
			}
			a.signal(syscall.SIGSTOP)
			c := start(t, dir, "carol", as(uids[1]))
			c.want("wait l", "won by takeover")
			a.signal(syscall.SIGCONT)
			if got := a.ask("check"); !strings.Contains(got, "taken over by carol") {
				t.Errorf("%q", got)
			}
			a.want("release", "released <nil>")
			c.want("check", "mine")
			c.want("release", "released <nil>")
		})
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
