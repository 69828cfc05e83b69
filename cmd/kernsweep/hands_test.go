package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"kernsweep/targets/targetstest"
)

// doors gives a daemon n further ports on the loopback, so that it answers as n
// targets.
func doors(t testing.TB, d *targetstest.Daemon, n int) []int {
	t.Helper()
	var ports []int
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { through(c, d.SSH.Port) })
			}
		})
	}
	return ports
}

// through joins a connection with a port until either ends.
func through(c net.Conn, port int) {
	defer c.Close()
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer to.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(to, c)
		to.Close()
		c.Close()
	})
	_, _ = io.Copy(c, to)
	to.Close()
	c.Close()
	wg.Wait()
}

// sshBlock is how a target logs in to a daemon by one of its doors.
func sshBlock(t testing.TB, d *targetstest.Daemon, port int) string {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(d.Dir, "host_ed25519.pub"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("ssh {\n    host = \"127.0.0.1\"\n    port = %d\n    user = %q\n    key = %q\n    host_keys = [%q]\n    config = \"none\"\n  }",
		port, d.SSH.User, d.SSH.Key, strings.TrimSpace(string(key)))
}

// TestHands runs the scripts of testdata/hands: commands by hand on targets that
// are one sshd with several doors, and a Dropbear.
func TestHands(t *testing.T) {
	sshd := targetstest.SSHD(t)
	dropbear := targetstest.Dropbear(t)
	ports := doors(t, sshd, 3)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/hands",
		Setup: func(e *testscript.Env) error {
			for i, p := range ports {
				e.Setenv(fmt.Sprintf("SSH%d", i+1), sshBlock(t, sshd, p))
			}
			e.Setenv("DROPBEAR", sshBlock(t, dropbear, dropbear.SSH.Port))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("KERNSWEEP_LEASES", filepath.Join(e.WorkDir, "leases"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"fill": func(ts *testscript.TestScript, _ bool, args []string) {
			for _, f := range args {
				text := ts.ReadFile(f)
				for _, name := range []string{"SSH1", "SSH2", "SSH3", "DROPBEAR"} {
					text = strings.ReplaceAll(text, "$"+name, ts.Getenv(name))
				}
				ts.Check(os.WriteFile(ts.MkAbs(f), []byte(text), 0o644))
			}
		}},
		UpdateScripts: *update,
	})
}
