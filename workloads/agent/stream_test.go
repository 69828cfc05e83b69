package agent

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"kernsweep/workloads/wire"
)

// freePort is a TCP port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// serve starts a server and waits until its port is open. The function waits
// for its end and reads its spool.
func serve(t *testing.T, argv []string, port string) func() *wire.Spool {
	t.Helper()
	argv = append(argv, "run", "-spool", filepath.Join(t.TempDir(), "spool"), "-deadline", "1m", "-listen", port, "stream", "-listen", port, "-once")
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "KERNSWEEP_AGENT="+argv[0])
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); line != "ready\n" {
		t.Fatalf("server said %q, %v", line, err)
	}
	return func() *wire.Spool {
		s, err := wire.Read(r)
		if err != nil {
			t.Error(err)
		}
		cmd.Wait()
		return s
	}
}

func figure(t *testing.T, s *wire.Spool, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s.Values[name]["value"], 64)
	if err != nil {
		t.Fatalf("%s: %v; %v %s", name, err, s.End, s.Stderr)
	}
	return v
}

func TestStream(t *testing.T) {
	bin := realAgent(t, "amd64")
	for _, c := range []struct{ direction, parallel, host string }{
		{"send", "1", "127.0.0.1"}, {"receive", "1", "127.0.0.1"}, {"send", "3", "[::1]"}, {"receive", "4", "127.0.0.1"},
	} {
		t.Run(c.direction+c.parallel, func(t *testing.T) {
			port := freePort(t)
			end := serve(t, []string{bin}, port)
			client := runReal(t, bin, "stream", "-connect", c.host+":"+port, "-direction", c.direction, "-duration", "200ms", "-parallel", c.parallel)
			server := end()
			if client.End["status"] != "ok" || server.End["status"] != "ok" {
				t.Fatalf("client %v %s, server %v %s", client.End, client.Stderr, server.End, server.Stderr)
			}
			if a, b := figure(t, client, "bytes"), figure(t, server, "bytes"); a != b || a == 0 {
				t.Errorf("client %v bytes, server %v", a, b)
			}
			if s := figure(t, client, "seconds"); s < 0.19 {
				t.Errorf("it took %v s", s)
			}
		})
	}
}

// Both byte orders of MIPS, emulated, as server and as client of this machine.
func TestStreamAcrossArchitectures(t *testing.T) {
	native := realAgent(t, "amd64")
	for arch, emulator := range map[string]string{"mips": "qemu-mips", "mipsle": "qemu-mipsel"} {
		script := filepath.Join(t.TempDir(), arch)
		text := "#!/bin/sh\nexec " + emulator + " " + realAgent(t, arch) + " \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("KERNSWEEP_AGENT", "")
		port := freePort(t)
		end := serve(t, []string{script}, port)
		client := runReal(t, native, "stream", "-connect", "127.0.0.1:"+port, "-direction", "receive", "-duration", "200ms")
		if server := end(); figure(t, client, "bytes") != figure(t, server, "bytes") {
			t.Errorf("%s as server: %v and %v", arch, client.Values, server.Values)
		}
		port = freePort(t)
		end = serve(t, []string{native}, port)
		t.Setenv("KERNSWEEP_AGENT", script)
		client = runReal(t, script, "stream", "-connect", "127.0.0.1:"+port, "-direction", "send", "-duration", "200ms")
		t.Setenv("KERNSWEEP_AGENT", "")
		if server := end(); figure(t, client, "bytes") != figure(t, server, "bytes") {
			t.Errorf("%s as client: %v and %v", arch, client.Values, server.Values)
		}
	}
}

func TestStreamFails(t *testing.T) {
	bin := realAgent(t, "amd64")
	port := freePort(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"stream: exited with status 1", []string{"-connect", "127.0.0.1:" + port, "-direction", "send", "-duration", "1s"}},
		{"-direction", []string{"-connect", "127.0.0.1:" + port, "-duration", "1s"}},
		{"say -once", []string{"-listen", port}},
		{"either -listen or -connect", []string{"-once"}},
		{"stream: exited with status 1", []string{"-connect", "localhost:" + port, "-direction", "send", "-duration", "1s"}},
	} {
		s := runReal(t, bin, append([]string{"stream"}, c.args...)...)
		if s.End["status"] != "failed" || !strings.Contains(s.End["reason"], c.want) {
			t.Errorf("%v: %v", c.args, s.End)
		}
	}
}

// A stranger on the port is turned away, a receiver that dies is a failure.
func TestStreamWithStrangers(t *testing.T) {
	bin := realAgent(t, "amd64")
	port := freePort(t)
	end := serve(t, []string{bin}, port)
	dial := func(b []byte) net.Conn {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(b)
		return c
	}
	stranger := dial([]byte("GET / HTTP/1.1\r\n\r\n"))
	if n, err := stranger.Read(make([]byte, 1)); err == nil {
		t.Errorf("the stranger got %d bytes", n)
	}
	stranger.Close()
	c := dial(hello{send: false, streams: 1, milliseconds: 60000}.bytes())
	c.Read(make([]byte, 1))
	c.Close()
	if s := end(); s.End["status"] != "failed" || !bytes.Contains(s.Stderr, []byte("stream: ")) {
		t.Errorf("%v %s", s.End, s.Stderr)
	}
}

func TestParseAddr(t *testing.T) {
	for in, want := range map[string]any{
		"10.0.2.2:5001":       syscall.SockaddrInet4{Port: 5001, Addr: [4]byte{10, 0, 2, 2}},
		"[::1]:80":            syscall.SockaddrInet6{Port: 80, Addr: [16]byte{15: 1}},
		"[fd00:1::a:2]:9":     syscall.SockaddrInet6{Port: 9, Addr: [16]byte{0xfd, 0, 0, 1, 13: 0xa, 15: 2}},
		"[1:2:3:4:5:6:7:8]:1": syscall.SockaddrInet6{Port: 1, Addr: [16]byte{1: 1, 3: 2, 5: 3, 7: 4, 9: 5, 11: 6, 13: 7, 15: 8}},
	} {
		got, _, err := parseAddr(in)
		switch a := got.(type) {
		case *syscall.SockaddrInet4:
			if *a != want {
				t.Errorf("%s: %v", in, *a)
			}
		case *syscall.SockaddrInet6:
			if *a != want {
				t.Errorf("%s: %v", in, *a)
			}
		default:
			t.Errorf("%s: %v", in, err)
		}
	}
	for _, in := range []string{"", "1.2.3:4", "1.2.3.4", "1.2.3.256:1", "1.2.3.4:0", "1.2.3.4:65536", "::1:80", "[::1:80", "[1:2]:3", "[1::2::3]:4", "[12345::]:1", "host:1"} {
		if a, _, err := parseAddr(in); err == nil {
			t.Errorf("%q: %v", in, a)
		}
	}
}

func TestHelloProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := hello{rapid.Bool().Draw(t, "send"), rapid.IntRange(1, mostStreams).Draw(t, "n"), rapid.Int64Range(1, 1<<32-1).Draw(t, "ms")}
		if got, ok := parseHello(h.bytes()); !ok || got != h {
			t.Fatalf("%+v became %+v", h, got)
		}
		parseHello(rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "noise"))
	})
}
