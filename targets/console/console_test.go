package console

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kernsweep/targets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo serves one connection: it greets and sends back what comes.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "hello\r\n")
		io.Copy(c, c)
	}()
	return l.Addr().String()
}

// Every driver gives a byte stream in both directions that Close ends.
func TestDrivers(t *testing.T) {
	for name, d := range map[string]targets.Console{
		"tcp":     &TCP{Address: echo(t)},
		"command": &Command{Command: []string{"sh", "-c", `printf 'hello\r\n'; exec cat`}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := d.(interface{ Check() error }).Check(); err != nil {
				t.Fatal(err)
			}
			rw, err := d.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := rw.Write([]byte("\x00\xffping\n")); err != nil {
				t.Fatal(err)
			}
			want := "hello\r\n\x00\xffping\n"
			got := make([]byte, len(want))
			if _, err := io.ReadFull(rw, got); err != nil || string(got) != want {
				t.Fatalf("%q %v", got, err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := rw.Read(got)
				ended <- err
			}()
			if err := rw.Close(); err != nil {
				t.Error(err)
			}
			select {
			case err := <-ended:
				if err == nil {
					t.Error("a read after Close succeeds")
				}
			case <-time.After(10 * time.Second):
				t.Error("Close does not end a read")
			}
		})
	}
}

// A program that fails says so where the boot reads it.
func TestCommandEnds(t *testing.T) {
	rw, err := (&Command{Command: []string{"sh", "-c", "echo console is in use >&2; exit 7"}}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	var said strings.Builder
	b := make([]byte, 100)
	for err == nil {
		var n int
		n, err = rw.Read(b)
		said.Write(b[:n])
	}
	if !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "status 7") || said.String() != "console is in use\n" {
		t.Errorf("%q %v", said.String(), err)
	}
}

// A program that ignores the request to end is ended with its children.
func TestCommandIsEnded(t *testing.T) {
	rw, err := (&Command{Command: []string{"sh", "-c", `trap "" TERM; echo up; while :; do sleep 100; done`}}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(rw, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := rw.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > closeGrace+5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestNothingThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	if _, err := (&TCP{Address: addr}).Open(t.Context()); err == nil {
		t.Error("a closed port opens")
	}
	if _, err := (&Command{Command: []string{"/nonexistent/console"}}).Open(t.Context()); err == nil {
		t.Error("a missing program opens")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (&Command{Command: []string{"cat"}}).Open(ctx); err == nil {
		t.Error("a cancelled open opens")
	}
	for _, a := range []string{"", "labpi", ":2001", "labpi:"} {
		if (&TCP{Address: a}).Check() == nil {
			t.Errorf("%q passes its check", a)
		}
	}
	if (&Command{}).Check() == nil {
		t.Error("no program passes its check")
	}
}
