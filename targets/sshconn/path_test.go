package sshconn

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// TestPath: a target's path is in front of PATH for what runs there and for
// what that starts, the probe's shell included, whatever the login shell is.
func TestPath(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dirs := []string{filepath.Join(t.TempDir(), "opt $x bin"), filepath.Join(t.TempDir(), "it's")}
	for i, dir := range dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"iperf3", "only" + []string{"first", "second"}[i]} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho "+name+" of $0\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, d := range map[string]*targetstest.Daemon{
		"OpenSSH":  targetstest.SSHD(t),
		"Dropbear": targetstest.Dropbear(t),
		"tcsh":     targetstest.SSHD(t, "ForceCommand exec "+targetstest.Tool(t, "tcsh")+` -c "$SSH_ORIGINAL_COMMAND"`),
	} {
		t.Run(name, func(t *testing.T) {
			s := d.SSH
			s.Path = strings.Join(dirs, ":")
			c := dial(t, s, targets.DialOptions{})
			defer c.Close()
			want := "iperf3 of " + dirs[0] + "/iperf3\n"
			if got := targetstest.Output(t, ctx, c, "iperf3"); got != want {
				t.Errorf("the path comes second: %q, want %q", got, want)
			}
			if got := targetstest.Output(t, ctx, c, "sh", "-c", "command -v onlysecond"); got != dirs[1]+"/onlysecond\n" {
				t.Errorf("a shell there finds %q", got)
			}
			if ev, err := targets.Probe(ctx, c); err != nil || !strings.Contains(string(ev.Files["tools"]), "iperf3="+strings.TrimSpace(want)) {
				t.Errorf("the probe finds %q, %v", ev.Files["tools"], err)
			}
			var whole strings.Builder
			for _, w := range targetstest.Words() {
				whole.WriteString(w + "\x00")
			}
			if got := targetstest.Output(t, ctx, c, append([]string{"printf", `%s\000`}, targetstest.Words()...)...); got != whole.String() {
				t.Errorf("words changed: %q", got)
			}
			exit, err := c.Run(ctx, targets.Cmd{Argv: []string{"kernsweep-no-such-program"}})
			if err != nil || exit.Code != 127 {
				t.Errorf("a missing program: %v, %v", exit, err)
			}
		})
	}
}
