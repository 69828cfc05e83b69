package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// occupy opens n connections to d that never log in, as many as it allows, and
// returns a function that ends them. A server that still counts connections which
// have gone turns some away at first, and then also answers with a line.
func occupy(t *testing.T, d *targetstest.Daemon, n int) func() {
	t.Helper()
	var all []net.Conn
	end := time.Now().Add(20 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for full := false; !full; {
		c, in := greeted(t, d)
		switch {
		case in && len(all) < n:
			all = append(all, c)
			continue
		case in: // it does not count all of them yet
			c.Close()
		default:
			full = len(all) == n
		}
		if !full && time.Now().After(end) {
			t.Fatalf("the server lets more than %d in, or fewer", n)
		}
		if !full {
			<-again.C
		}
	}
	return func() {
		for _, c := range all {
			c.Close()
		}
	}
}

// greeted connects, and says whether the server lets it in: then it tells its
// version.
func greeted(t *testing.T, d *targetstest.Daemon) (c net.Conn, in bool) {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", d.SSH.Port))
	if err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 4)
	if _, err := io.ReadFull(c, word); err != nil || string(word) != "SSH-" {
		c.Close()
		return nil, false
	}
	return c, true
}

// A server that has as many log-ins under way as it allows turns others away: it
// is asked again, a bounded number of times, and the message says what is wrong.
func TestMaxStartups(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"MaxStartups 2:100:2", "PerSourceMaxStartups 2"} {
		t.Run(line, func(t *testing.T) {
			d := targetstest.SSHD(t, line, "LoginGraceTime 60")
			free := occupy(t, d, 2)
			hasty := impatient()
			hasty.patience = 10 * time.Second
			begin := time.Now()
			_, err := hasty.Dial(t.Context(), d.SSH, targets.DialOptions{})
			var link *targets.LinkError
			if !errors.As(err, &link) || link.Phase != "handshake" || link.Refused || !strings.Contains(err.Error(), "log-ins") {
				t.Errorf("%v", err)
			}
			if took, least := time.Since(begin), 15*hasty.pause; took < least {
				t.Errorf("given up after %s, want at least %s", took, least)
			}
			var notes []string
			time.AfterFunc(700*time.Millisecond, free)
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			c, err := New(zap.NewNop()).Dial(ctx, d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if len(notes) != 1 || !strings.Contains(notes[0], "let us in after it had closed") {
				t.Errorf("notes %q", notes)
			}
			// After a boot the wait for the boot asks again by itself.
			busy := occupy(t, d, 2)
			defer busy()
			slow := New(zap.NewNop())
			slow.pause, slow.patience = 20*time.Second, time.Minute // longer than one try takes on a busy machine
			begin = time.Now()
			if _, err := slow.Dial(ctx, d.SSH, targets.DialOptions{AfterBoot: true}); err == nil || time.Since(begin) > slow.pause {
				t.Errorf("after a boot: %v after %s", err, time.Since(begin))
			}
		})
	}
}

// A crowd of our own never exceeds what a small server takes.
func TestManyDialsAtOnce(t *testing.T) {
	t.Parallel()
	d := targetstest.SSHD(t, "MaxStartups 3:100:3")
	dialer := New(zap.NewNop())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			c, err := dialer.Dial(ctx, d.SSH, targets.DialOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
}

// A log-in that takes longer than the server allows ends with a reason: here an
// agent that asks its owner for consent and gets none in time.
func TestLoginGraceTime(t *testing.T) {
	d := targetstest.SSHD(t, "LoginGraceTime 1")
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ring := fullAgent(t, 0, d.SSH.Key)
	ended := make(chan struct{})
	defer close(ended)
	go func() { // passes the question for its keys on, and holds back what must be signed
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		to, err := net.Dial("unix", ring)
		if err != nil {
			return
		}
		defer to.Close()
		go io.Copy(c, to)
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if n > 4 && buf[4] == 13 { // SSH_AGENTC_SIGN_REQUEST
				select {
				case <-time.After(3 * time.Second):
				case <-ended:
				}
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(dir, "agent"))
	d.SSH.Key = ""
	dialError(t, d.SSH, 20*time.Second, "log in", "closed the connection during the log-in", "LoginGraceTime")
}

// The workload, its sampler, the kernel log and the collection at once, where the
// server allows two sessions, and where it allows one.
func TestMoreWorkThanSessions(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for _, line := range []string{"MaxSessions 2", "MaxSessions 1"} {
		t.Run(line, func(t *testing.T) {
			d := targetstest.SSHD(t, line)
			c := dial(t, d.SSH, targets.DialOptions{})
			defer c.Close()
			path := filepath.Join(t.TempDir(), "collected")
			var wg sync.WaitGroup
			var ran atomic.Int32
			for _, argv := range [][]string{{"sh", "-c", "sleep 1; echo workload"}, {"sh", "-c", "for i in 1 2 3; do sleep 0.2; done; echo sampler"},
				{"sh", "-c", "sleep 0.5; echo log"}, {"echo", "gather"}} {
				wg.Go(func() {
					if got := targetstest.Output(t, ctx, c, argv...); got != "" {
						ran.Add(1)
					}
				})
			}
			wg.Go(func() {
				if err := c.Put(ctx, path, 0o700, strings.NewReader("collected")); err != nil {
					t.Error(err)
				}
			})
			wg.Wait()
			if b, err := os.ReadFile(path); err != nil || string(b) != "collected" || ran.Load() != 4 {
				t.Errorf("%d commands ran; the file holds %q, %v", ran.Load(), b, err)
			}
			// Who waits in vain for a session is told so.
			started := make(chan struct{})
			end, cancel := context.WithCancel(ctx)
			for range int(line[len(line)-1] - '0') {
				wg.Go(func() {
					_, _ = c.Run(end, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 50"}, Stdout: onWrite(func() { started <- struct{}{} })})
				})
				<-started
			}
			short, over := context.WithTimeout(ctx, 300*time.Millisecond)
			_, err := c.Run(short, targets.Cmd{Argv: []string{"true"}})
			over()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "waited for one of the") {
				t.Error(err)
			}
			cancel()
			wg.Wait()
			// They are dead, though no session was free to kill them in.
			awaitFewer(t, d.Pid, 1) // sshd's own one for this connection
		})
	}
}

// awaitFewer waits until at most n processes are below pid.
func awaitFewer(t *testing.T, pid, n int) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(5 * time.Second)
	for len(targetstest.Descendants(pid)) > n {
		select {
		case <-tick.C:
		case <-end:
			t.Errorf("processes left below the server: %v", targetstest.Descendants(pid))
			return
		}
	}
}

// Keys that nobody knows, and fewer tries than keys.
func TestTooManyKeys(t *testing.T) {
	d := targetstest.SSHD(t, "MaxAuthTries 3")
	t.Setenv("SSH_AUTH_SOCK", fullAgent(t, 4, ""))
	right := d.SSH.Key
	d.SSH.Key = ""
	dialError(t, d.SSH, 10*time.Second, "log in", "after too many keys that it does not know (MaxAuthTries)", "name the right one by key =", "IdentitiesOnly")
	// One key named in the ssh configuration is the only one offered.
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s\n", d.SSH.Port, right, d.SSH.KnownHosts)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dial(t, targets.SSH{Host: "box", ConfigFile: config}, targets.DialOptions{}).Close()
	d.SSH.Key = right
	dial(t, d.SSH, targets.DialOptions{}).Close()
}
