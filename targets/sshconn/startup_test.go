package sshconn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// externalSFTP makes sshd start its sftp server through the login shell, whose
// start-up files then speak first.
func externalSFTP(t *testing.T) string {
	return "Subsystem sftp " + targetstest.Tool(t, "sftp-server", "/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server")
}

// Login shells out of the user database, with start-up files that print: words
// arrive unchanged, output is that of the command alone, and files go.
func TestLoginShellsWithNoisyStartUpFiles(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	noise := "echo \"Welcome to rig 7\"\necho 'kernsweep-pid=' was never here\n"
	for shell, l := range map[string]targetstest.Login{
		"bash":     {Shell: "/bin/bash", Files: map[string]string{".bashrc": noise + "echo and to errors too >&2\n"}},
		"tcsh":     {Shell: targetstest.Tool(t, "tcsh"), Files: map[string]string{".cshrc": noise, ".login": noise}},
		"fish":     {Shell: targetstest.Tool(t, "fish"), Files: map[string]string{".config/fish/config.fish": noise}},
		"dash":     {Shell: "/bin/dash"},
		"aliasing": {Shell: "/bin/bash", Files: map[string]string{".bashrc": "shopt -s expand_aliases; alias exec='echo aliased; exec'; set -u\n"}},
	} {
		for server, d := range map[string]*targetstest.Daemon{
			"sshd": targetstest.SSHDFor(t, l, externalSFTP(t)), "dropbear": targetstest.DropbearFor(t, l),
		} {
			t.Run(shell+" "+server, func(t *testing.T) {
				var notes []string
				c := dial(t, d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
				defer c.Close()
				var whole strings.Builder
				for _, w := range targetstest.Words() {
					whole.WriteString(w + "\x00")
				}
				if got := targetstest.Output(t, ctx, c, append([]string{"printf", `%s\000`}, targetstest.Words()...)...); got != whole.String() {
					t.Errorf("words changed: %.300q", got)
				}
				if got := targetstest.Output(t, ctx, c, "echo", "clean"); got != "clean\n" {
					t.Errorf("output %q", got)
				}
				path := filepath.Join(t.TempDir(), "file")
				if err := c.Put(ctx, path, 0o700, strings.NewReader("content")); err != nil {
					t.Error(err)
				}
				var back bytes.Buffer
				if err := c.Get(ctx, path, &back); err != nil || back.String() != "content" {
					t.Errorf("got %q, %v", back.String(), err)
				}
				said := strings.Join(notes, "\n")
				if server == "sshd" && shell == "bash" && (!strings.Contains(said, "start-up file of the login shell") || !strings.Contains(said, "Welcome to rig 7")) {
					t.Errorf("notes %q", notes)
				}
			})
		}
	}
}

// Login shells that run no commands are refused by name, for files too.
func TestLoginShellsThatRunNothing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	menu := filepath.Join(t.TempDir(), "menu")
	if err := os.WriteFile(menu, []byte("#!/bin/sh\necho 1 status  2 reboot  3 quit\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for shell, words := range map[string]string{
		targetstest.Tool(t, "rbash", "/bin/rbash"):          "restricted",
		targetstest.Tool(t, "nologin", "/usr/sbin/nologin"): "not available",
		menu: "1 status",
	} {
		d := targetstest.SSHDFor(t, targetstest.Login{Shell: shell}, externalSFTP(t))
		c := dial(t, d.SSH, targets.DialOptions{})
		_, runErr := c.Run(ctx, targets.Cmd{Argv: []string{"true"}})
		putErr := c.Put(ctx, filepath.Join(t.TempDir(), "x"), 0o600, strings.NewReader("x"))
		c.Close()
		for _, err := range []error{runErr, putErr} {
			var link *targets.LinkError
			if !errors.As(err, &link) || !strings.Contains(err.Error(), "the login shell of user") || !strings.Contains(err.Error(), words) ||
				!strings.Contains(err.Error(), "chsh") {
				t.Errorf("%s: %v", shell, err)
			}
		}
		if shell != menu && !strings.Contains(runErr.Error(), filepath.Base(shell)) && shell != "/usr/sbin/nologin" {
			t.Errorf("%s is not named: %v", shell, runErr)
		}
	}
}

// What a server says before the log-in is no output.
func TestBanners(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	banner := filepath.Join(t.TempDir(), "banner")
	if err := os.WriteFile(banner, []byte(strings.Repeat("Authorised use only! \x1b[31m\n", 60)), 0o644); err != nil {
		t.Fatal(err)
	}
	for server, d := range map[string]*targetstest.Daemon{
		"sshd": targetstest.SSHD(t, "Banner "+banner, "PrintMotd yes", externalSFTP(t)), "dropbear": targetstest.Dropbear(t, "-b", banner),
	} {
		c := dial(t, d.SSH, targets.DialOptions{})
		var out, errs bytes.Buffer
		exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"echo", "clean"}, Stdout: &out, Stderr: &errs})
		if err != nil || !exit.OK() || out.String() != "clean\n" || errs.Len() > 0 {
			t.Errorf("%s: %v, %v, %q, %q", server, exit, err, out.String(), errs.String())
		}
		path := filepath.Join(t.TempDir(), "file")
		if err := c.Put(ctx, path, 0o600, strings.NewReader("x")); err != nil {
			t.Errorf("%s: %v", server, err)
		}
		c.Close()
	}
}

// A start-up file that never ends holds every command: the caller's deadline does
// not, and the message says where it hangs.
func TestStartUpFileThatHangs(t *testing.T) {
	t.Parallel()
	d := targetstest.SSHDFor(t, targetstest.Login{Shell: "/bin/bash", Files: map[string]string{".bashrc": "sleep 30\n"}})
	c := dial(t, d.SSH, targets.DialOptions{})
	defer c.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	begin := time.Now()
	_, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the login shell has not started the command") || time.Since(begin) > 10*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
}
