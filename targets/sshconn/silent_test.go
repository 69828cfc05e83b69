package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// impatient gives servers 300 ms for whatever they owe.
func impatient() *Dialer {
	d := New(zap.NewNop())
	d.patience, d.opening, d.pause = 300*time.Millisecond, 300*time.Millisecond, 20*time.Millisecond
	return d
}

// A server that falls silent after its first, second, … packet is given up at the
// deadline, and the message says how far it came.
func TestSilentAfterEveryPacket(t *testing.T) {
	before := goleak.IgnoreCurrent()
	var said []string
	t.Run("log-ins", func(t *testing.T) {
		for n := 1; ; n++ {
			f := targetstest.NewFake(t, targetstest.FakeOptions{Mute: n})
			begin := time.Now()
			c, err := impatient().Dial(t.Context(), f.SSH, targets.DialOptions{})
			if err == nil { // the server's last words let us in
				ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
				_, err = c.Run(ctx, targets.Cmd{Argv: []string{"true"}})
				stop()
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not open a session") {
					t.Errorf("mute after the log-in: %v", err)
				}
				c.Close()
				break
			}
			var link *targets.LinkError
			if took := time.Since(begin); !errors.As(err, &link) || !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
				t.Fatalf("mute after %d packets: after %s: %v", n, took, err)
			}
			_, stage, _ := strings.Cut(err.Error(), "within 300ms: ")
			stage, _, _ = strings.Cut(stage, ";")
			said = append(said, link.Phase+": "+stage)
		}
	})
	var stages []string
	for _, s := range said {
		for _, word := range []string{
			"handshake: it said its version (SSH-2.0-Go) and did not begin the key exchange",
			"handshake: the server (SSH-2.0-Go) did not finish the key exchange",
			"log in: the server (SSH-2.0-Go) showed its host key and says nothing since",
			"log in: the server (SSH-2.0-Go) does not answer the log-in request (offered: key ",
		} {
			if strings.HasPrefix(s, word) && !slices.Contains(stages, word) {
				stages = append(stages, word)
			}
		}
	}
	if len(stages) != 4 {
		t.Errorf("stages named:\n%s", strings.Join(said, "\n"))
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

func TestSilentBeforeTheVersion(t *testing.T) {
	for fault, words := range map[targetstest.Fault]string{
		targetstest.SilentAccept: "it accepted the connection and said nothing",
		targetstest.HalfBanner:   `it sent the beginning of an SSH version ("SSH-2.0-Ha") and nothing more`,
		targetstest.EndlessLines: `bytes of text ("please wait") and no SSH version`,
		targetstest.SilentBanner: "did not begin the key exchange",
	} {
		f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: fault})
		begin := time.Now()
		_, err := impatient().Dial(t.Context(), f.SSH, targets.DialOptions{})
		var link *targets.LinkError
		if took := time.Since(begin); !errors.As(err, &link) || link.Phase != "handshake" || !strings.Contains(err.Error(), words) || took > 5*time.Second {
			t.Errorf("%s: after %s: %v", fault, took, err)
		}
	}
}

// After the log-in: each wait ends at the server's deadline or at the caller's,
// and says for what it waited.
func TestSilentSessions(t *testing.T) {
	for _, c := range []struct {
		fault  targetstest.Fault
		own    time.Duration // the caller's deadline, 0 = none
		words  string
		passes bool
	}{
		{targetstest.SilentOpen, 0, "the server did not open a session within 300ms", false},
		{targetstest.SilentOpen, 100 * time.Millisecond, "the server did not open a session: context deadline", false},
		{targetstest.SilentExec, 0, "opened a session and did not answer the exec request within 300ms", false},
		{targetstest.SilentExec, 100 * time.Millisecond, "did not answer the exec request: context deadline", false},
		{targetstest.NeverStatus, time.Second, "the command's output ended, but its exit status has not come", false},
		{targetstest.NeverCloses, time.Minute, "", true},
		{targetstest.NeverEnds, time.Minute, "", true},
	} {
		t.Run(fmt.Sprint(c.fault, c.own), func(t *testing.T) {
			f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: c.fault})
			conn, err := impatient().Dial(t.Context(), f.SSH, targets.DialOptions{})
			if err != nil {
				t.Fatal(err)
			}
			before := goleak.IgnoreCurrent()
			ctx := t.Context()
			if c.own > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, c.own)
				defer stop()
			}
			var out bytes.Buffer
			begin := time.Now()
			exit, err := conn.Run(ctx, targets.Cmd{Argv: []string{"echo", "said"}, Stdout: &out})
			took := time.Since(begin)
			if c.passes && (err != nil || !exit.OK() || out.String() != "said\n") || !c.passes && (err == nil || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("%v, %v, %q", exit, err, out.String())
			}
			var link *targets.LinkError
			if c.own == 0 && !errors.As(err, &link) || !c.passes && c.own > 0 && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the kind of error: %v", err)
			}
			if took > 9*time.Second {
				t.Errorf("took %s", took)
			}
			conn.Close()
			if err := goleak.Find(before, goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).accept.func1"),
				goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).channel.func1")); err != nil {
				t.Error(err)
			}
		})
	}
}

// An SFTP server that never answers costs its deadline once; then files go over a
// plain channel. A link that dies at that moment is named as lost.
func TestSilentSFTP(t *testing.T) {
	f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: targetstest.SilentSFTP})
	var notes []string
	c, err := impatient().Dial(t.Context(), f.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := filepath.Join(t.TempDir(), "empty")
	for range 2 { // the fake gives commands no standard input
		if err := c.Put(t.Context(), path, 0o600, strings.NewReader("")); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "plain channel, since its sftp server does not answer") {
		t.Errorf("notes %q", notes)
	}
	dead := targetstest.NewFake(t, targetstest.FakeOptions{Fault: targetstest.DeadLinkSFTP})
	d, err := impatient().Dial(t.Context(), dead.SSH, targets.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var link *targets.LinkError
	if err := d.Put(t.Context(), path, 0o600, strings.NewReader("")); !errors.As(err, &link) || link.Phase != "transfer" || !strings.Contains(err.Error(), "connection lost") {
		t.Error(err)
	}
}
