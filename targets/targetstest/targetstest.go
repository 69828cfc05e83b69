// Package targetstest helps to test what speaks to targets: real OpenSSH and
// Dropbear servers on loopback, a fake server that misbehaves on purpose, and
// the conformance suite of targets.Conn. A missing program fails the test.
package targetstest

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// startTimeout bounds the start of a server.
const startTimeout = 20 * time.Second

// Daemon is a server started for one test and ended with it.
type Daemon struct {
	SSH     targets.SSH // logs in to it
	Dir     string      // its folder: host keys, known_hosts, authorized_keys
	HostKey string      // its ed25519 key, as in a .pub file
	Pid     int

	log *logBuffer
}

// Log is what the server has written so far.
func (d *Daemon) Log() string { return d.log.String() }

// Children lists the pids of the processes that serve connections now.
func (d *Daemon) Children() []int { return children(d.Pid) }

// SSHD starts OpenSSH's sshd on 127.0.0.1. The lines come first in its
// configuration, so they win; it has an sftp server unless a line names one
// or is "#no-sftp".
func SSHD(t testing.TB, lines ...string) *Daemon {
	t.Helper()
	return sshdBehind(t, nil, lines...)
}

// sshdBehind is SSHD with its program started by the words of prefix.
func sshdBehind(t testing.TB, prefix []string, lines ...string) *Daemon {
	t.Helper()
	sshd := Tool(t, "sshd", "/usr/sbin/sshd", "/usr/local/sbin/sshd")
	d := newDaemon(t)
	config := append([]string{}, lines...)
	if !strings.Contains(strings.Join(lines, "\n"), "HostKey ") {
		config = append(config, "HostKey "+filepath.Join(d.Dir, "host_ed25519"))
	}
	config = append(config,
		fmt.Sprintf("ListenAddress 127.0.0.1:%d", d.SSH.Port),
		"AuthorizedKeysFile "+filepath.Join(d.Dir, "authorized_keys"),
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin yes", "PidFile none",
		// Above the first level bash reads no ~/.bashrc, which is the caller's own and may be slow.
		"SetEnv SHLVL=1", "PrintMotd no")
	all := strings.Join(lines, "\n")
	if !strings.Contains(all, "MaxStartups ") { // of this the last line wins
		config = append(config, "MaxStartups 500")
	}
	if !strings.Contains(all, "#no-sftp") && !strings.Contains(all, "Subsystem sftp") {
		config = append(config, "Subsystem sftp internal-sftp")
	}
	file := filepath.Join(d.Dir, "sshd_config")
	write(t, file, strings.Join(config, "\n")+"\n")
	if os.Geteuid() == 0 {
		// Debian's sshd refuses to start without its separation directory.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	argv := append(append([]string{}, prefix...), sshd, "-D", "-e", "-f", file)
	ready := "Server listening on"
	for _, l := range lines { // the one that it comes to last
		if address, ok := strings.CutPrefix(l, "ListenAddress "); ok {
			ready = "Server listening on " + address
		}
	}
	d.start(t, exec.Command(argv[0], argv[1:]...), ready)
	return d
}

// newDaemon makes the folder, the keys and the log-in of a server.
func newDaemon(t testing.TB) *Daemon {
	t.Helper()
	dir := t.TempDir()
	d := &Daemon{Dir: dir, log: &logBuffer{}}
	client := KeyFile(t, filepath.Join(dir, "client"))
	d.HostKey = KeyFile(t, filepath.Join(dir, "host_ed25519"))
	write(t, filepath.Join(dir, "authorized_keys"), client+"\n")
	port := FreePort(t)
	write(t, filepath.Join(dir, "known_hosts"), fmt.Sprintf("[127.0.0.1]:%d %s\n", port, d.HostKey))
	d.SSH = targets.SSH{
		Host: "127.0.0.1", Port: port, Key: filepath.Join(dir, "client"), ConfigFile: "none",
		KnownHosts: filepath.Join(dir, "known_hosts"),
	}
	return d
}

// start runs cmd until the end of the test and waits for ready in its log.
func (d *Daemon) start(t testing.TB, cmd *exec.Cmd, ready string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	w.Close()
	d.Pid = cmd.Process.Pid
	seen := make(chan bool, 1)
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		found := false
		in := bufio.NewScanner(r)
		for in.Scan() {
			d.log.add(in.Text())
			if !found && strings.Contains(in.Text(), ready) {
				found = true
				seen <- true
			}
		}
		if !found {
			seen <- false
		}
	}()
	t.Cleanup(func() {
		for _, pid := range append(Descendants(d.Pid), d.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
		select {
		case <-logged:
		case <-time.After(startTimeout):
			t.Errorf("%s: its log is still held open by a process it left", cmd.Path)
		}
		r.Close()
		if testing.Verbose() && t.Failed() {
			t.Logf("log of %s:\n%s", cmd.Path, d.Log())
		}
	})
	select {
	case ok := <-seen:
		if !ok {
			t.Fatalf("%s ended at once:\n%s", cmd.Path, d.Log())
		}
	case <-time.After(startTimeout):
		t.Fatalf("%s did not start within %v:\n%s", cmd.Path, startTimeout, d.Log())
	}
}

// awaitPort waits until the server's port accepts connections.
func (d *Daemon) awaitPort(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", d.SSH.Port))
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("port %d does not open: %v\n%s", d.SSH.Port, err, d.Log())
		}
	}
}

// Tool finds a program by name or by one of the given paths; a missing one
// fails the test.
func Tool(t testing.TB, name string, paths ...string) string {
	t.Helper()
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Fatalf("this test needs the program %s, and it is not installed", name)
	return ""
}

// KeyFile writes a new ed25519 key to path and its public half to path.pub,
// and returns the public half as "ssh-ed25519 AAAA…".
func KeyFile(t testing.TB, path string) string {
	t.Helper()
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	write(t, path+".pub", line+"\n")
	return line
}

// FreePort is a TCP port of 127.0.0.1 that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
