package sshconn

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// heard keeps what a shell says, for those who wait for a part of it.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func newHeard() *heard { return &heard{more: make(chan struct{}, 1)} }

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	select {
	case h.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) await(t *testing.T, ctx context.Context, want string) {
	t.Helper()
	for !strings.Contains(h.String(), want) {
		select {
		case <-h.more:
		case <-ctx.Done():
			t.Fatalf("no %q in:\n%s", want, h.String())
		}
	}
}

// daemons that log a shell in.
func shellDaemons(t *testing.T) map[string]*targetstest.Daemon {
	return map[string]*targetstest.Daemon{
		"sshd":     targetstest.SSHDFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")}),
		"dropbear": targetstest.DropbearFor(t, targetstest.Login{Shell: targetstest.Tool(t, "dash")}),
	}
}

func TestShellOnATerminal(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, d := range shellDaemons(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, d.SSH, targets.DialOptions{})
			in, typed := io.Pipe()
			out, sizes := newHeard(), make(chan Size)
			type end struct {
				exit targets.Exit
				err  error
			}
			ended := make(chan end, 1)
			go func() {
				exit, err := Shell(ctx, c, Terminal{In: in, Out: out, Err: io.Discard, Type: "vt100", Size: Size{101, 31}, Resized: sizes})
				ended <- end{exit, err}
			}()
			say := func(s string) {
				if _, err := io.WriteString(typed, s); err != nil {
					t.Error(err)
				}
			}
			say("echo \"<$TERM>\"; stty size\n")
			out.await(t, ctx, "<vt100>")
			out.await(t, ctx, "31 101")
			sizes <- Size{66, 22}
			// A window's size and what is typed are not ordered: ask until it is there.
			for tick := time.NewTicker(50 * time.Millisecond); !strings.Contains(out.String(), "22 66"); {
				say("stty size\n")
				select {
				case <-tick.C:
				case <-ctx.Done():
					t.Fatalf("the new size does not arrive:\n%s", out.String())
				}
			}
			say("exit 7\n")
			if e := <-ended; e.err != nil || e.exit.Code != 7 {
				t.Errorf("%v, %v", e.exit, e.err)
			}
			typed.Close()
		})
	}
}

func TestShellWithoutATerminal(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for name, d := range shellDaemons(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, d.SSH, targets.DialOptions{})
			out, errs := newHeard(), newHeard()
			exit, err := Shell(ctx, c, Terminal{In: strings.NewReader("echo out; echo err >&2; test -t 0 || exit 9"), Out: out, Err: errs})
			if err != nil || exit.Code != 9 || out.String() != "out\n" || errs.String() != "err\n" {
				t.Errorf("%v, %v: %q, %q", exit, err, out.String(), errs.String())
			}
		})
	}
}

func TestShellWhereNoTerminalIsGiven(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := dial(t, targetstest.SSHD(t, "PermitTTY no").SSH, targets.DialOptions{})
	if _, err := Shell(ctx, c, Terminal{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Type: "vt100"}); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("%v", err)
	}
	if exit, err := Shell(ctx, c, Terminal{In: strings.NewReader("exit 4\n"), Out: io.Discard, Err: io.Discard}); err != nil || exit.Code != 4 {
		t.Errorf("%v, %v", exit, err)
	}
}

// Whoever is asked to go hangs the shell up.
func TestShellThatIsLeft(t *testing.T) {
	all, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := dial(t, targetstest.SSHD(t).SSH, targets.DialOptions{})
	ctx, leave := context.WithCancel(all)
	in, typed := io.Pipe()
	defer typed.Close()
	out, ended := newHeard(), make(chan error, 1)
	go func() {
		_, err := Shell(ctx, c, Terminal{In: in, Out: out, Err: io.Discard, Type: "vt100"})
		ended <- err
	}()
	if _, err := io.WriteString(typed, "echo \"pid\"=$$,done\n"); err != nil {
		t.Fatal(err)
	}
	out.await(t, all, ",done\r\n")
	out.await(t, all, "pid=")
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_, rest, _ := strings.Cut(out.String(), "pid=")
	pid, _, _ := strings.Cut(rest, ",")
	gone := "while kill -0 " + pid + " 2>/dev/null; do sleep 0.05; done; echo gone"
	if pid == "" || targetstest.Output(t, all, c, "sh", "-c", gone) != "gone\n" {
		t.Errorf("the shell %q lives on", pid)
	}
}
