package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/term"

	"kernsweep/targets/targetstest"
)

// shellLab is a configuration with one target, a daemon of this machine.
func shellLab(t *testing.T, d *targetstest.Daemon) string {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := fmt.Sprintf("target \"desk\" {\n  arch = \"amd64\"\n  ssh {\n    host = %q\n    port = %d\n    user = %q\n    key = %q\n    known_hosts = %q\n    config = \"none\"\n  }\n  boot \"none\" {}\n}\n",
		d.SSH.Host, d.SSH.Port, me.Username, d.SSH.Key, d.SSH.KnownHosts)
	if err := os.WriteFile(filepath.Join(dir, "testbeds.hcl"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KERNSWEEP_LEASES", filepath.Join(dir, "leases"))
	return dir
}

// typed sends keys.
func (x *terminal) typed(s string) {
	x.t.Helper()
	if _, err := x.master.WriteString(s); err != nil {
		x.t.Fatal(err)
	}
}

// over waits for the end: the status, and that the terminal is as it was.
func (x *terminal) over(status int) {
	x.t.Helper()
	err := x.cmd.Wait()
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Errorf("status %d (%v), want %d:\n%s", got, err, status, x.shown())
	}
	if now, err := term.GetState(int(x.slave.Fd())); err != nil || *now != *x.before {
		x.t.Errorf("the terminal is left changed (%v)", err)
	}
}

// A person's terminal is the target's: size, keys, exit status; and it is given back.
func TestShellOnAPersonsTerminal(t *testing.T) {
	t.Setenv("TERM", "vt220")
	for name, d := range map[string]*targetstest.Daemon{
		"sshd":     targetstest.SSHDFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")}),
		"dropbear": targetstest.DropbearFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")}),
	} {
		t.Run(name, func(t *testing.T) {
			x := atTerminal(t, shellLab(t, d), "shell", "desk")
			x.typed("echo \"<$TERM>\"; echo re\"ady\"\r")
			x.await("<vt220>")
			x.await("ready\r\n")
			if err := pty.Setsize(x.master, &pty.Winsize{Rows: 33, Cols: 111}); err != nil {
				t.Fatal(err)
			}
			x.typed("until stty size | grep '33 111'; do sleep 0.1; done\r")
			x.await("\n33 111\r\n")
			x.typed("sh -c 'echo st\"arted\"; sleep 300'\r")
			x.await("started\r\n")
			x.typed("\x03") // is the target's
			x.await("^C")
			x.typed("exit 6\r")
			x.over(6)
		})
	}
}

func TestShellIsLeft(t *testing.T) {
	dir := shellLab(t, targetstest.SSHDFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")}))
	for what, c := range map[string]struct {
		leave  func(x *terminal)
		status int
	}{
		"by ~.":     {func(x *terminal) { x.typed("\r~."); x.await("ready") }, 0},
		"by a TERM": {func(x *terminal) { _ = x.cmd.Process.Signal(syscall.SIGTERM) }, exitInterrupted},
	} {
		t.Run(what, func(t *testing.T) {
			x := atTerminal(t, dir, "shell", "desk")
			x.typed("echo re\"ady\"\r")
			x.await("ready\r\n")
			c.leave(x)
			x.over(c.status)
		})
	}
}

// A server without terminals, and one whose machine cuts the link.
func TestShellOfAPoorServer(t *testing.T) {
	none := atTerminal(t, shellLab(t, targetstest.SSHD(t, "PermitTTY no")), "shell", "desk")
	none.await("gives no terminal")
	none.typed("exit 4\n")
	none.over(4)

	d := targetstest.SSHDFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")})
	cut := atTerminal(t, shellLab(t, d), "shell", "desk")
	cut.typed("echo re\"ady\"\r")
	cut.await("ready\r\n")
	for _, pid := range targetstest.Descendants(d.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // some end with others
	}
	cut.await("connection lost")
	cut.over(exitInfra)
}
