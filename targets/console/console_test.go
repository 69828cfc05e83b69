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
		"pty":     &Command{Command: []string{"sh", "-c", `printf 'hello\r\n'; exec cat`}, PTY: true},
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

// A program that fails at once is an error with its words; a later end is read.
func TestCommandEnds(t *testing.T) {
	for _, pty := range []bool{false, true} {
		_, err := (&Command{Command: []string{"sh", "-c", "echo console is in use >&2; exit 7"}, PTY: pty}).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "status 7") || !strings.Contains(err.Error(), "console is in use") {
			t.Errorf("at once: %v", err)
		}
		rw, err := (&Command{Command: []string{"sh", "-c", "echo up; read x; echo bye; exit 7"}, PTY: pty}).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rw.Write([]byte("x\n")); err != nil {
			t.Error(err)
		}
		said, err := io.ReadAll(ending{rw})
		if err == nil || !strings.Contains(err.Error(), "status 7") || string(said) != "up\nbye\n" {
			t.Errorf("pty %v: %q %v", pty, said, err)
		}
		if err := rw.Close(); err != nil {
			t.Error(err)
		}
	}
}

// ending makes the end of a console an error for io.ReadAll.
type ending struct{ io.Reader }

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New(err.Error())
	}
	return n, err
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
