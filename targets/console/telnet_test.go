package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kernsweep/targets"
)

// telnetFake is a server that says its script, in pieces, and keeps what comes.
type telnetFake struct {
	addr string
	mu   sync.Mutex
	got  []byte
	news chan struct{}
}

// serveTelnet says script to the first client, size bytes a packet (0: at once),
// and then what answer returns for what came.
func serveTelnet(t *testing.T, script []byte, size int, answer func(got []byte) []byte) *telnetFake {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &telnetFake{addr: l.Addr().String(), news: make(chan struct{}, 1)}
	var wg sync.WaitGroup
	t.Cleanup(func() { l.Close(); wg.Wait() })
	wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		send := func(b []byte) {
			for step := size; len(b) > 0; b = b[min(step, len(b)):] {
				if step == 0 {
					step = len(b)
				}
				c.Write(b[:min(step, len(b))])
			}
		}
		send(script)
		buf := make([]byte, 4096)
		for {
			n, err := c.Read(buf)
			f.mu.Lock()
			f.got = append(f.got, buf[:n]...)
			f.mu.Unlock()
			select {
			case f.news <- struct{}{}:
			default:
			}
			if n > 0 && answer != nil {
				send(answer(buf[:n]))
			}
			if err != nil {
				return
			}
		}
	})
	return f
}

// await waits until what came contains want.
func (f *telnetFake) await(t *testing.T, want []byte) []byte {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		f.mu.Lock()
		got := bytes.Clone(f.got)
		f.mu.Unlock()
		if bytes.Contains(got, want) {
			return got
		}
		select {
		case <-f.news:
		case <-limit:
			t.Fatalf("waited for % x, got % x", want, got)
		}
	}
}

func openTelnet(t *testing.T, c *Telnet) io.ReadWriteCloser {
	t.Helper()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	rw, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rw.Close() })
	return rw
}

func expectRead(t *testing.T, r io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(r, got); err != nil || string(got) != want {
		t.Fatalf("%q %v, want %q", got[:n], err, want)
	}
}

// What a server says comes out the same, however it is cut into packets.
func TestTelnetDecoding(t *testing.T) {
	var script []byte
	for _, p := range [][]byte{
		{iac, will, optEcho, iac, will, optSGA, iac, do, 24, iac, dont, optEcho},
		[]byte("U-Boot\r\x00\r\n"), {iac, iac, 'x', iac, 241, iac, 249},
		{iac, sb, 24, 1, iac, se}, {iac, sb, optComPort, 106, iac, iac, iac, se}, []byte("=> "),
		{iac, sb, 1, 2, 3, iac, will, 99}, // its end is missing
		{iac, do, optBinary}, {iac, will, optBinary}, []byte("\r\x00"), {iac, iac},
	} {
		script = append(script, p...)
	}
	want := "U-Boot\r\r\n\xffx=> \r\x00\xff"
	for _, size := range []int{0, 1, 2, 3, 7} {
		f := serveTelnet(t, script, size, nil)
		rw := openTelnet(t, &Telnet{Address: f.addr})
		expectRead(t, rw, want)
		got := f.await(t, []byte{iac, wont, 24})
		if n := bytes.Count(got, []byte{iac, do, optEcho}); n != 1 {
			t.Errorf("size %d: DO ECHO %d times in % x", size, n, got)
		}
		if !bytes.Contains(got, []byte{iac, dont, 99}) {
			t.Errorf("size %d: WILL 99 is not refused: % x", size, got)
		}
	}
}

// What we type: IAC doubled; CR NUL until the server takes 8-bit data.
func TestTelnetEncoding(t *testing.T) {
	f := serveTelnet(t, []byte{iac, will, optEcho}, 0, nil)
	rw := openTelnet(t, &Telnet{Address: f.addr})
	if n, err := rw.Write([]byte("a\xff\rb\r\n\r")); n != 7 || err != nil {
		t.Fatal(n, err)
	}
	f.await(t, []byte("a\xff\xff\r\x00b\r\n\r\x00"))

	f = serveTelnet(t, []byte{iac, will, optEcho, iac, do, optBinary}, 0, nil)
	rw = openTelnet(t, &Telnet{Address: f.addr})
	if _, err := rw.Write([]byte("c\r\xffd")); err != nil {
		t.Fatal(err)
	}
	f.await(t, []byte("c\r\xff\xffd"))
}

// A raw port gets none of our options typed at its machine.
func TestTelnetToARawPort(t *testing.T) {
	f := serveTelnet(t, []byte("login: "), 0, nil)
	rw := openTelnet(t, &Telnet{Address: f.addr})
	expectRead(t, rw, "login: ")
	if _, err := rw.Write([]byte("root\n")); err != nil {
		t.Fatal(err)
	}
	if got := f.await(t, []byte("root")); string(got) != "root\n" {
		t.Errorf("%q", got)
	}
}

// A server that asks for the same again, or answers our answers, gets no more.
func TestTelnetOptionsEnd(t *testing.T) {
	var answers atomic.Int64
	f := serveTelnet(t, []byte{iac, will, optSGA, iac, do, 31}, 0, func(got []byte) []byte {
		if answers.Add(1) > 50 {
			return nil
		}
		return bytes.Repeat([]byte{iac, will, optSGA, iac, do, optSGA, iac, wont, 31, iac, dont, 31}, 3)
	})
	rw := openTelnet(t, &Telnet{Address: f.addr})
	if _, err := rw.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	f.await(t, []byte("x"))
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := answers.Load(); n > 10 || len(f.got) > 40 {
		t.Errorf("%d answers, % x", n, f.got)
	}
}

// comPortServer answers RFC 2217 as one that sets baud.
func comPortServer(baud uint32) func([]byte) []byte {
	var in decoder
	return func(got []byte) []byte {
		var out []byte
		for _, c := range got {
			if _, event := in.add(c, true); !event {
				continue
			}
			switch {
			case in.verb == will && in.opt == optComPort:
				out = append(out, iac, do, optComPort)
			case in.verb == sb && in.sub[0] == optComPort && in.sub[1] == setBaud:
				out = append(out, comPort(setBaud+answerOffset, byte(baud>>24), byte(baud>>16), byte(baud>>8), byte(baud))...)
			case in.verb == sb && in.sub[0] == optComPort:
				out = append(out, comPort(setControl+answerOffset, 8)...) // of its own
				out = append(out, comPort(in.sub[1]+answerOffset, in.sub[2:]...)...)
			}
		}
		return out
	}
}

func TestTelnetSetsTheLine(t *testing.T) {
	for _, size := range []int{0, 1} {
		// 0xffff: a byte of the value is IAC
		f := serveTelnet(t, []byte{iac, will, optEcho}, size, comPortServer(65535))
		rw := openTelnet(t, &Telnet{Address: f.addr, Line: Line{Baud: 65535, Format: "7E2", Flow: "rtscts"}})
		for _, want := range [][]byte{{setBaud, 0, 0, 255, 255, 255, 255}, {setData, 7}, {setParity, 3}, {setStop, 2}, {setControl, 3}} {
			f.await(t, append([]byte{iac, sb, optComPort}, want...))
		}
		if n := rw.(targets.Noter).Notes(); n != nil {
			t.Errorf("%q", n)
		}
		if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
			t.Error(err)
		}
		f.await(t, append(comPort(setControl, controlBreakOn), comPort(setControl, controlBreakOff)...))
	}
	// One that sets something else.
	f := serveTelnet(t, nil, 0, comPortServer(9600))
	_, err := (&Telnet{Address: f.addr, Line: Line{Baud: 115200}}).Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "set baud 9600, not the 115200") {
		t.Error(err)
	}
}

// Servers without RFC 2217 are used as they are, and that is said.
func TestTelnetWithoutComPort(t *testing.T) {
	t.Parallel() // it waits
	for name, c := range map[string]struct {
		answer func([]byte) []byte
		note   string
	}{
		"refuses": {func(got []byte) []byte {
			if bytes.Contains(got, []byte{iac, will, optComPort}) {
				return []byte{iac, dont, optComPort}
			}
			return nil
		}, "has no RFC 2217"},
		"never answers": {nil, "has no RFC 2217"},
		"takes the option only": {func(got []byte) []byte {
			if bytes.Contains(got, []byte{iac, will, optComPort}) {
				return []byte{iac, do, optComPort}
			}
			return nil
		}, "did not answer the setting of baud"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serveTelnet(t, []byte("login: "), 0, c.answer)
			begun := time.Now()
			rw := openTelnet(t, &Telnet{Address: f.addr, Line: Line{Baud: 115200}})
			if took := time.Since(begun); took > answerTime+2*time.Second {
				t.Errorf("it took %s", took)
			}
			expectRead(t, rw, "login: ")
			if n := fmt.Sprint(rw.(targets.Noter).Notes()); !strings.Contains(n, c.note) {
				t.Error(n)
			}
			if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
				t.Error(err)
			}
			if name == "refuses" {
				f.await(t, []byte{iac, brk})
			}
		})
	}
}

// A server whose port is taken says so and hangs up; a wait for one ends with
// its context, and a read with Close.
func TestTelnetThatDoesNotOpen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "Port already in use\r\n")
			c.Close()
		}
	}()
	for _, d := range []targets.Console{&Telnet{Address: l.Addr().String()}, &TCP{Address: l.Addr().String()}} {
		if _, err := d.Open(t.Context()); err == nil || !strings.Contains(err.Error(), `said "Port already in use"`) {
			t.Error(err)
		}
		f := serveTelnet(t, nil, 0, nil)
		switch d := d.(type) {
		case *Telnet:
			d.Address, d.Baud = f.addr, 9600
		case *TCP:
			d.Address = f.addr
		}
		ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := d.Open(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		stop()
	}
}
