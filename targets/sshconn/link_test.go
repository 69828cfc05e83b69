package sshconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// dialError dials s, which must fail in phase with every word of the sentence.
func dialError(t *testing.T, s targets.SSH, limit time.Duration, phase string, words ...string) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := New(zap.NewNop()).Dial(ctx, s, targets.DialOptions{})
	if err == nil {
		c.Close()
		t.Fatal("the log-in succeeded")
	}
	var link *targets.LinkError
	if !errors.As(err, &link) || link.Phase != phase {
		t.Errorf("got %v; want a link error of phase %q", err, phase)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if err := goleak.Find(before, goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).serve")); err != nil {
		t.Error(err)
	}
}

func TestServersThatMisbehave(t *testing.T) {
	for _, c := range []struct {
		fault targetstest.Fault
		phase string
		words []string
	}{
		{targetstest.SilentAccept, "handshake", []string{"stopped during the log-in"}},
		{targetstest.SilentBanner, "handshake", []string{"stopped during the log-in"}},
		{targetstest.Garbage, "handshake", []string{"not an SSH server", "HTTP/1.0 400"}},
		{targetstest.CloseAtOnce, "handshake", []string{"before saying anything"}},
		{targetstest.SilentAuth, "log in", []string{"stopped during the log-in"}},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: c.fault})
			dialError(t, f.SSH, time.Second, c.phase, c.words...)
		})
	}
}

func TestTheHandshakeHasItsOwnDeadline(t *testing.T) {
	for fault, word := range map[targetstest.Fault]string{
		targetstest.SilentAccept: "it accepted the connection and said nothing",
		targetstest.SilentBanner: "SSH-2.0-Silent_1.0",
		targetstest.SilentAuth:   "was not done within 200ms",
	} {
		f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: fault})
		d := New(nil)
		d.patience = 200 * time.Millisecond
		_, err := d.Dial(context.Background(), f.SSH, targets.DialOptions{})
		if err == nil || !strings.Contains(err.Error(), word) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v; want a deadline, and the words %q", fault, err, word)
		}
	}
}

func TestNothingThere(t *testing.T) {
	port := targetstest.FreePort(t)
	dialError(t, targets.SSH{Host: "127.0.0.1", Port: port, ConfigFile: "none"}, 5*time.Second, "connect", "nothing listens on port")
	dialError(t, targets.SSH{Host: "no..such..name", ConfigFile: "none"}, 20*time.Second, "connect", "no..such..name", "looked up")
	dialError(t, targets.SSH{Host: "-oProxyCommand=x", ConfigFile: "none"}, 5*time.Second, "connect", "begins with a dash")
	dialError(t, targets.SSH{ConfigFile: "none"}, 5*time.Second, "connect", "no host given")
}

func TestSessionsThatHang(t *testing.T) {
	for _, fault := range []targetstest.Fault{targetstest.SilentOpen, targetstest.SilentExec} {
		t.Run(string(fault), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: fault})
			c := dial(t, f.SSH, targets.DialOptions{})
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			if _, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v; want the deadline", err)
			}
			c.Close()
			if err := goleak.Find(before, goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).serve"),
				goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).accept"),
				goleak.IgnoreAnyFunction("kernsweep/targets/targetstest.(*Fake).channel.func1")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFourEndings(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	f := targetstest.NewFake(t, targetstest.FakeOptions{Fault: targetstest.NoStatus})
	c := dial(t, f.SSH, targets.DialOptions{})
	defer c.Close()
	if e, err := c.Run(ctx, targets.Cmd{Argv: []string{"true"}}); err != nil || !e.NoStatus || e.OK() {
		t.Errorf("closed without a status: %+v, %v", e, err)
	}
	var link *targets.LinkError
	_, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 50"}, Stdout: onWrite(f.Cut)})
	if !errors.As(err, &link) || !strings.Contains(err.Error(), "connection lost") {
		t.Errorf("cut: %v; want a lost link", err)
	}
	// The server process of an OpenSSH connection, killed from inside.
	d := targetstest.SSHD(t)
	s := dial(t, d.SSH, targets.DialOptions{})
	defer s.Close()
	if _, err := s.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "kill -9 $PPID"}}); !errors.As(err, &link) {
		t.Errorf("server process killed: %v; want a lost link", err)
	}
}

// onWrite calls a function at the first write.
func onWrite(f func()) *callOnWrite { return &callOnWrite{f: f} }

type callOnWrite struct {
	once sync.Once
	f    func()
}

func (c *callOnWrite) Write(p []byte) (int, error) {
	c.once.Do(c.f)
	return len(p), nil
}

func TestKeepaliveEndsADeadLink(t *testing.T) {
	const interval = 100 * time.Millisecond
	f := targetstest.NewFake(t, targetstest.FakeOptions{})
	f.SSH.Keepalive = interval
	c := dial(t, f.SSH, targets.DialOptions{})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	start := time.Now()
	_, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100"}, Stdout: onWrite(f.Freeze)})
	var link *targets.LinkError
	if !errors.As(err, &link) || !strings.Contains(err.Error(), "keepalives") {
		t.Errorf("got %v; want a link lost for unanswered keepalives", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
}

func TestQuietCommandsAreLeftAlone(t *testing.T) {
	const interval = 50 * time.Millisecond
	f := targetstest.NewFake(t, targetstest.FakeOptions{})
	f.SSH.Keepalive = interval
	c := dial(t, f.SSH, targets.DialOptions{})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*interval)
	defer cancel()
	_, err := c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", "echo up; sleep 100"}, Stdout: onWrite(f.Freeze), Quiet: true})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want the context's deadline, which alone decides", err)
	}
}

func TestFiftyBrokenConnectionsLeaveNothing(t *testing.T) {
	d := targetstest.SSHD(t)
	d.SSH.Keepalive = 200 * time.Millisecond
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dialer := New(zap.NewNop())
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			c, err := dialer.Dial(ctx, d.SSH, targets.DialOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			// Stopped, not killed: the connection stays open and nothing answers.
			kill := "kill -STOP $PPID; sleep 100"
			_, err = c.Run(ctx, targets.Cmd{Argv: []string{"sh", "-c", kill}})
			var link *targets.LinkError
			if !errors.As(err, &link) {
				t.Errorf("connection %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	for _, pid := range d.Children() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestFewSessions(t *testing.T) {
	d := targetstest.SSHD(t, "MaxSessions 2")
	c := dial(t, d.SSH, targets.DialOptions{})
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if got := targetstest.Output(t, ctx, c, "sh", "-c", fmt.Sprintf("sleep 0.1; echo %d", i)); got != fmt.Sprintf("%d\n", i) {
				t.Errorf("command %d said %q", i, got)
			}
		})
	}
	wg.Wait()
	refusing := targetstest.NewFake(t, targetstest.FakeOptions{Fault: targetstest.OpenRefused})
	r := dial(t, refusing.SSH, targets.DialOptions{})
	defer r.Close()
	var link *targets.LinkError
	if _, err := r.Run(ctx, targets.Cmd{Argv: []string{"true"}}); !errors.As(err, &link) || !strings.Contains(err.Error(), "refuses every session") {
		t.Errorf("got %v", err)
	}
}
