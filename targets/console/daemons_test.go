package console

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// daemon starts a program for a test and waits until its port opens.
func daemon(t *testing.T, port int, argv ...string) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", argv[0], said.String())
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); ; <-tick.C {
		listening, err := os.ReadFile("/proc/net/tcp") // a connection would use the console up
		if err == nil && strings.Contains(string(listening), fmt.Sprintf(":%04X 00000000:0000 0A", port)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen on %d", argv[0], port)
		}
	}
}

// baudOf is the speed that the far end of a wire sees.
func baudOf(t *testing.T, far *os.File) int { return int(termiosOf(t, far).Ospeed) }

// TestSer2net goes through the real ser2net: raw, telnet and RFC 2217.
func TestSer2net(t *testing.T) {
	ser2net := targetstest.Tool(t, "ser2net", "/usr/sbin/ser2net")
	for name, accepter := range map[string]string{
		"raw": "tcp,127.0.0.1,%d", "telnet": "telnet,tcp,127.0.0.1,%d", "rfc2217": "telnet(rfc2217),tcp,127.0.0.1,%d",
	} {
		t.Run(name, func(t *testing.T) {
			far, device, _ := wire(t)
			port := targetstest.FreePort(t)
			conf := filepath.Join(t.TempDir(), "ser2net.yaml")
			text := fmt.Sprintf("%%YAML 1.1\n---\nconnection: &c\n  accepter: "+accepter+"\n  connector: serialdev,%s,9600n81,local\n", port, device)
			if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			daemon(t, port, ser2net, "-n", "-d", "-c", conf)
			address := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
			var d targets.Console = &TCP{Address: address}
			if name != "raw" {
				d = &Telnet{Address: address, Line: Line{Baud: 57600, Format: "8N1", Flow: "none"}}
			}
			rw, err := d.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer rw.Close()
			all := make([]byte, 256)
			for i := range all {
				all[i] = byte(i)
			}
			both(t, rw, far, append(all, "\r\x00\r\n\xff\xff\r"...))
			if n, ok := rw.(targets.Noter); ok {
				if got := n.Notes(); (len(got) == 0) != (name == "rfc2217") {
					t.Errorf("notes %q", got)
				}
				if want := map[string]int{"telnet": 9600, "rfc2217": 57600}[name]; baudOf(t, far) != want {
					t.Errorf("%d baud, want %d", baudOf(t, far), want)
				}
				if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
					t.Error(err)
				}
				both(t, rw, far, []byte("after the break"))
			}
			if _, err := d.Open(t.Context()); err == nil || !strings.Contains(strings.ToLower(err.Error()), "in use") {
				t.Errorf("a second one: %v", err)
			}
			closeEndsRead(t, rw)
		})
	}
}

// both sends b through the console in either direction.
func both(t *testing.T, near io.ReadWriter, far *os.File, b []byte) {
	t.Helper()
	if _, err := near.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = far.SetReadDeadline(time.Now().Add(20 * time.Second)) // a terminal has deadlines
	expectRead(t, far, string(b))
	if _, err := far.Write(b); err != nil {
		t.Fatal(err)
	}
	expectRead(t, near, string(b))
}

// TestConserver goes through the real conserver and its client on a terminal.
func TestConserver(t *testing.T) {
	conserver := targetstest.Tool(t, "conserver", "/usr/sbin/conserver")
	client := targetstest.Tool(t, "console")
	far, device, _ := wire(t)
	port, dir := targetstest.FreePort(t), t.TempDir()
	conf := filepath.Join(dir, "conserver.cf")
	text := fmt.Sprintf(`config * { sslrequired no; }
default full { rw *; }
console lab1 { master 127.0.0.1; include full; type device; device %s; baud 9600; parity none; logfile /dev/null; }
access * { trusted 127.0.0.1; }
`, device)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "passwd"), []byte("*any*:\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon(t, port, conserver, "-C", conf, "-P", filepath.Join(dir, "passwd"), "-p", fmt.Sprint(port), "-b", fmt.Sprint(port+1), "-M", "127.0.0.1", "-E", "-n")
	c := &Command{Command: []string{client, "-E", "-M", "127.0.0.1", "-p", fmt.Sprint(port), "-l", "kernsweep", "lab1"}, PTY: true, Break: "^Ecl0"}
	rw, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said []byte
	for buf := make([]byte, 1000); !bytes.Contains(said, []byte("help]")); {
		n, err := rw.Read(buf)
		said = append(said, buf[:n]...)
		if err != nil {
			t.Fatalf("%v: %q", err, said)
		}
	}
	both(t, rw, far, []byte("uname -a\r"))
	if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
		t.Error(err)
	}
	said = nil
	for buf := make([]byte, 1000); !bytes.Contains(said, []byte("[halt sent]")); {
		n, err := rw.Read(buf)
		said = append(said, buf[:n]...)
		if err != nil {
			t.Fatalf("%v: %q", err, said)
		}
	}
	closeEndsRead(t, rw)
}
