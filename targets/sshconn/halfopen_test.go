package sshconn

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// Packets vanish in the middle of a command, of a trial, of an idle hold and of
// the request to reboot: each wait ends, as a lost link or at the caller's
// deadline, and the machine is reached again afterwards.
func TestPacketsVanish(t *testing.T) {
	if !targetstest.Apart(t) {
		return
	}
	net := targetstest.NewNetwork(t)
	d := net.SSHD(t)
	d.SSH.Keepalive = 400 * time.Millisecond
	most := 6 * time.Second // 3 intervals, and the wait for what was closed to end
	if os.Getenv("KERNSWEEP_LONG") == "1" {
		d.SSH.Keepalive, most = 0, time.Minute
	}
	wantLost := func(t *testing.T, begin time.Time, err error) {
		t.Helper()
		var link *targets.LinkError
		if took := time.Since(begin); !errors.As(err, &link) || link.Phase != "exec" || !strings.Contains(err.Error(), "connection lost") ||
			!strings.Contains(err.Error(), "keepalives") && !strings.Contains(err.Error(), "did not open a session within 30s") || took > most {
			t.Errorf("after %s: %v", took, err)
		}
	}
	for name, lose := range map[string]func(t *testing.T, c targets.Conn){
		"a command": func(t *testing.T, c targets.Conn) {
			begin := time.Now()
			_, err := c.Run(t.Context(), targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100"}, Stdout: onWrite(func() { net.Cut(t) })})
			wantLost(t, begin, err)
		},
		"an idle hold": func(t *testing.T, c targets.Conn) {
			net.Cut(t)
			begin := time.Now()
			select {
			case <-c.(*conn).lost:
			case <-time.After(most):
			}
			_, err := c.Run(t.Context(), targets.Cmd{Argv: []string{"true"}})
			wantLost(t, begin, err)
		},
		"the request to reboot": func(t *testing.T, c targets.Conn) {
			net.Cut(t)
			begin := time.Now()
			wantLost(t, begin, targets.AskReboot(t.Context(), c, "true"))
		},
		"a transfer": func(t *testing.T, c targets.Conn) {
			begin := time.Now()
			err := c.Get(t.Context(), "/dev/zero", onWrite(func() { net.Cut(t) }))
			var link *targets.LinkError
			if took := time.Since(begin); !errors.As(err, &link) || link.Phase != "transfer" || took > most {
				t.Errorf("after %s: %v", took, err)
			}
		},
		"an upload": func(t *testing.T, c targets.Conn) {
			begin := time.Now()
			path := filepath.Join(t.TempDir(), "uploaded")
			err := c.Put(t.Context(), path, 0o600, &cutting{cut: func() { net.Cut(t) }})
			var link *targets.LinkError
			if took := time.Since(begin); !errors.As(err, &link) || link.Phase != "transfer" || took > most {
				t.Errorf("after %s: %v", took, err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("half a file has the name of the whole: %v", err)
			}
		},
		"a trial": func(t *testing.T, c targets.Conn) { // its deadline decides (law 8)
			ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
			defer stop()
			begin := time.Now()
			_, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100"}, Stdout: onWrite(func() { net.Cut(t) }), Quiet: true})
			if took := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || took < 3*time.Second || took > 3*time.Second+killTimeout+endTime {
				t.Errorf("after %s: %v", took, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			c := dial(t, d.SSH, targets.DialOptions{})
			lose(t, c)
			c.Close()
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
			net.Mend(t)
			again := dial(t, d.SSH, targets.DialOptions{})
			if got := targetstest.Output(t, t.Context(), again, "echo", "back"); got != "back\n" {
				t.Errorf("got %q", got)
			}
			again.Close()
		})
	}
}

// cutting is a file without end; after its first MiB the link is cut.
type cutting struct {
	n   int
	cut func()
}

func (c *cutting) Read(p []byte) (int, error) {
	if c.n < 1<<20 && c.n+len(p) >= 1<<20 {
		c.cut()
	}
	c.n += len(p)
	return len(p), nil
}

// Packets that vanish during the log-in, and a machine that is not there.
func TestPacketsVanishBeforeTheLogIn(t *testing.T) {
	if !targetstest.Apart(t) {
		return
	}
	net := targetstest.NewNetwork(t)
	d := net.SSHD(t)
	net.Cut(t)
	dialError(t, d.SSH, 20*time.Second, "connect", "powered and plugged in") // nobody answers ARP
	net.Mend(t)
	dial(t, d.SSH, targets.DialOptions{}).Close()
	net.Cut(t)
	dialError(t, d.SSH, time.Second, "connect", "answer") // ARP is still known
}

// Fifty connections that break in the middle of a command leave no goroutine, no
// descriptor and no process.
func TestFiftyVanishedConnectionsLeaveNothing(t *testing.T) {
	if !targetstest.Apart(t) {
		return
	}
	net := targetstest.NewNetwork(t)
	d := net.SSHD(t)
	d.SSH.Keepalive = 500 * time.Millisecond
	goroutines, descriptors := goleak.IgnoreCurrent(), entries(t, "/proc/self/fd")
	dialer := New(zap.NewNop())
	var ready, done sync.WaitGroup
	ready.Add(50)
	for range 50 {
		done.Go(func() {
			c, err := dialer.Dial(t.Context(), d.SSH, targets.DialOptions{})
			if err != nil {
				ready.Done()
				t.Error(err)
				return
			}
			defer c.Close()
			_, err = c.Run(t.Context(), targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100"}, Stdout: onWrite(ready.Done)})
			var link *targets.LinkError
			if !errors.As(err, &link) {
				t.Error(err)
			}
		})
	}
	ready.Wait()
	if now := entries(t, "/proc/self/fd"); now < descriptors+50 {
		t.Errorf("%d descriptors with 50 connections open, %d before: the count is wrong", now, descriptors)
	}
	net.Cut(t)
	done.Wait()
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
	if now := entries(t, "/proc/self/fd"); now > descriptors {
		t.Errorf("%d descriptors, %d before", now, descriptors)
	}
	if left := targetstest.Descendants(os.Getpid()); len(left) > len(targetstest.Descendants(d.Pid))+2 { // sshd and the network's keeper
		t.Errorf("processes left: %v", left)
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	e, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(e)
}
