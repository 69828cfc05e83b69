package sshconn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// chain is a target behind two jump hosts, and a way to stop or kill each.
type chain struct {
	hops [3]*targetstest.Daemon
	ssh  targets.SSH
}

func newChain(t *testing.T, second ...string) *chain {
	t.Helper()
	c := &chain{hops: [3]*targetstest.Daemon{targetstest.SSHD(t), targetstest.SSHD(t, second...), targetstest.Dropbear(t)}}
	config, known := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "known")
	var text, keys strings.Builder
	for i, d := range c.hops {
		name := []string{"outer", "inner", "rig"}[i]
		fmt.Fprintf(&text, "Host %s\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n IdentitiesOnly yes\n HostKeyAlias %s\n UserKnownHostsFile %s\n",
			name, d.SSH.Port, filepath.Join(d.Dir, "client"), name, known)
		fmt.Fprintf(&keys, "%s %s\n", name, d.HostKey)
	}
	for file, s := range map[string]string{config: text.String(), known: keys.String()} {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.ssh = targets.SSH{Host: "rig", Via: []string{"outer", "inner"}, ConfigFile: config, Keepalive: 300 * time.Millisecond}
	return c
}

// signal sends s to all processes of a hop's server, those that serve before the
// commands that run in them.
func (c *chain) signal(hop int, s syscall.Signal) {
	pids := append(targetstest.Descendants(c.hops[hop].Pid), c.hops[hop].Pid)
	slices.Reverse(pids)
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// A jump host that dies, or falls silent, in the middle of a command is named,
// and so is the target when it was the one.
func TestJumpHostThatDies(t *testing.T) {
	type death struct {
		hop    int
		signal syscall.Signal
		blames string
	}
	deaths := []death{{0, syscall.SIGKILL, "jump host 1 of 2: outer"}, {1, syscall.SIGKILL, "jump host 2 of 2: inner"},
		{1, syscall.SIGSTOP, "jump host 2 of 2: inner"}, {2, syscall.SIGKILL, ""}}
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		deaths = append(deaths, death{0, syscall.SIGSTOP, "jump host 1 of 2: outer"})
	}
	for _, c := range deaths {
		t.Run(fmt.Sprint(c.hop, " ", c.signal), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			way := newChain(t)
			conn := dial(t, way.ssh, targets.DialOptions{})
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			begin := time.Now()
			_, err := conn.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 20"}, Stdout: onWrite(func() { way.signal(c.hop, c.signal) })})
			var link *targets.LinkError
			if !errors.As(err, &link) || !strings.Contains(err.Error(), "connection lost") || time.Since(begin) > 15*time.Second {
				t.Fatalf("after %s: %v", time.Since(begin), err)
			}
			if (link.Hop == "") != (c.blames == "") || !strings.Contains(err.Error(), c.blames) {
				t.Errorf("blames %q: %v", link.Hop, err)
			}
			conn.Close()
			if c.signal == syscall.SIGKILL && c.hop < 2 { // gone altogether
				_, err := New(zap.NewNop()).Dial(ctx, way.ssh, targets.DialOptions{AfterBoot: true})
				if !errors.As(err, &link) || link.Phase != "connect" || c.hop == 0 && link.Hop == "" || c.hop == 1 && !strings.Contains(err.Error(), "jump host 2 of 2") {
					t.Errorf("dialled again: hop %q: %v", link.Hop, err)
				}
			}
			way.signal(c.hop, syscall.SIGCONT)
			if err := goleak.Find(before, goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Daemon).start.func1"),
				goleak.IgnoreAnyFunction("os/exec.(*Cmd).watchCtx.func1")); err != nil {
				t.Error(err)
			}
		})
	}
}

// What may be wrong on the way there, each with its place.
func TestJumpHostsThatRefuse(t *testing.T) {
	way := newChain(t, "AllowTcpForwarding no")
	dialError(t, way.ssh, 20*time.Second, "connect", "jump host 2 of 2: inner", "does not forward connections", "AllowTcpForwarding")
	way = newChain(t)
	s := way.ssh
	s.Via = []string{"outer", fmt.Sprintf("127.0.0.1:%d", targetstest.FreePort(t))}
	dialError(t, s, 20*time.Second, "connect", "jump host 2 of 2: ", "the jump host in front of it, outer", "could not connect")
	s.Via = []string{"outer", "nobody@inner"}
	dialError(t, s, 20*time.Second, "log in", "jump host 2 of 2: inner (nobody@127.0.0.1", "refused the log-in of user nobody")
	way.signal(2, syscall.SIGKILL)
	_, err := New(zap.NewNop()).Dial(t.Context(), way.ssh, targets.DialOptions{})
	var link *targets.LinkError
	if !errors.As(err, &link) || link.Hop != "" || !strings.Contains(err.Error(), "the jump host in front of it, inner") {
		t.Errorf("the target is down: hop %q: %v", link.Hop, err)
	}
}
