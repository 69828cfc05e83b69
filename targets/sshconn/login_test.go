package sshconn

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(targetstest.Tool(t, name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func TestPasswords(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("TEST_TARGET_PASSWORD", "open sesame")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("open sesame\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, question := range []bool{false, true} {
		f := targetstest.NewFake(t, targetstest.FakeOptions{Password: "open sesame", Question: question})
		f.SSH.Key = ""
		s := f.SSH
		s.PasswordEnv = "TEST_TARGET_PASSWORD"
		dial(t, s, targets.DialOptions{}).Close()
		s = f.SSH
		s.PasswordFile = file
		dial(t, s, targets.DialOptions{}).Close()
	}
	f := targetstest.NewFake(t, targetstest.FakeOptions{Password: "other"})
	f.SSH.Key, f.SSH.PasswordFile = "", file
	dialError(t, f.SSH, 10*time.Second, "log in", "refused the log-in of user tester", "the password", "the server accepts: password")
	f.SSH.PasswordFile, f.SSH.PasswordEnv = "", "TEST_TARGET_UNSET"
	dialError(t, f.SSH, 10*time.Second, "log in", "TEST_TARGET_UNSET is not set")
}

// fullAgent serves an agent with n keys that nobody knows, and perhaps one more.
func fullAgent(t *testing.T, n int, more string) string {
	t.Helper()
	ring := agent.NewKeyring()
	add := func(file string) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ssh.ParseRawPrivateKey(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for i := range n {
		file := filepath.Join(dir, fmt.Sprint(i))
		targetstest.KeyFile(t, file)
		add(file)
	}
	if more != "" {
		add(more)
	}
	socket := filepath.Join(dir, "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = agent.ServeAgent(ring, c) // ends with the connection
			}()
		}
	}()
	return socket
}

func TestAgents(t *testing.T) {
	d := targetstest.SSHD(t, "MaxAuthTries 3")
	t.Setenv("SSH_AUTH_SOCK", fullAgent(t, 20, ""))
	dial(t, d.SSH, targets.DialOptions{}).Close() // the explicit key is the only one offered
	key := d.SSH.Key
	d.SSH.Key = ""
	dialError(t, d.SSH, 10*time.Second, "log in", "agent key SHA256:", "set key on the target")
	t.Setenv("SSH_AUTH_SOCK", fullAgent(t, 0, key))
	dial(t, d.SSH, targets.DialOptions{}).Close()
}

func TestEncryptedKeys(t *testing.T) {
	d := targetstest.SSHD(t)
	plain := filepath.Join(t.TempDir(), "plain")
	b, err := os.ReadFile(d.SSH.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plain, b, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "ssh-keygen", "-q", "-p", "-N", "passphrase", "-f", d.SSH.Key)
	t.Setenv("SSH_AUTH_SOCK", "")
	dialError(t, d.SSH, 10*time.Second, "log in", "it is encrypted", "ssh-add")
	t.Setenv("SSH_AUTH_SOCK", fullAgent(t, 0, plain))
	dial(t, d.SSH, targets.DialOptions{}).Close()
	d.SSH.Key = filepath.Join(d.Dir, "none")
	dialError(t, d.SSH, 10*time.Second, "log in", "none", "no such file")
}

func TestJumpHosts(t *testing.T) {
	first, second, last := targetstest.SSHD(t), targetstest.SSHD(t), targetstest.Dropbear(t)
	config := filepath.Join(t.TempDir(), "config")
	known := filepath.Join(t.TempDir(), "known")
	var text, hosts strings.Builder
	for i, d := range []*targetstest.Daemon{first, second, last} {
		fmt.Fprintf(&text, "Host m%d\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n IdentitiesOnly yes\n HostKeyAlias alias%d\n UserKnownHostsFile %s\n",
			i, d.SSH.Port, filepath.Join(d.Dir, "client"), i, known)
		fmt.Fprintf(&hosts, "alias%d %s\n", i, d.HostKey)
	}
	fmt.Fprintf(&text, "Host jumped\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n HostKeyAlias alias2\n UserKnownHostsFile %s\n ProxyJump m0,m1\n",
		last.SSH.Port, filepath.Join(last.Dir, "client"), known)
	fmt.Fprintf(&text, "Host piped\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n HostKeyAlias alias2\n UserKnownHostsFile %s\n ProxyCommand %s 127.0.0.1 %%p\n",
		last.SSH.Port, filepath.Join(last.Dir, "client"), known, targetstest.Tool(t, "busybox")+" nc")
	for file, b := range map[string]string{config: text.String(), known: hosts.String()} {
		if err := os.WriteFile(file, []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, s := range []targets.SSH{
		{Host: "m2", Via: []string{"m0", "m1"}, ConfigFile: config},
		{Host: "jumped", ConfigFile: config},
		{Host: "piped", ConfigFile: config},
	} {
		c := dial(t, s, targets.DialOptions{})
		if got := targetstest.Output(t, ctx, c, "echo", "there"); got != "there\n" {
			t.Errorf("%s: %q", s.Host, got)
		}
		c.Close()
	}
	if err := os.WriteFile(known, []byte(strings.Replace(hosts.String(), "alias1 ", "gone ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	dialError(t, targets.SSH{Host: "jumped", ConfigFile: config}, 20*time.Second, "handshake", "jump host 2 of 2: m1", "it is unknown", "alias1 ssh-ed25519")
	dialError(t, targets.SSH{Host: "m2", Via: []string{"m0", "root@127.0.0.1:1"}, ConfigFile: config}, 20*time.Second, "connect", "jump host in front of it")
	dialError(t, targets.SSH{Host: "m2", Via: []string{"m0:x"}, ConfigFile: config}, 20*time.Second, "connect", "is not [user@]host[:port]")
}

func TestLegacyAlgorithms(t *testing.T) {
	f := targetstest.NewFake(t, targetstest.FakeOptions{Config: ssh.Config{
		KeyExchanges: []string{"diffie-hellman-group1-sha1"}, Ciphers: []string{"3des-cbc"}, MACs: []string{"hmac-sha1"}}})
	dialError(t, f.SSH, 10*time.Second, "handshake", "too old", "diffie-hellman-group1-sha1", `algorithms = "legacy"`)
	f.SSH.Algorithms = "legacy"
	var notes []string
	dial(t, f.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }}).Close()
	if len(notes) != 1 || !strings.Contains(notes[0], "diffie-hellman-group1-sha1") || !strings.Contains(notes[0], "3des-cbc") {
		t.Errorf("notes: %q", notes)
	}
	f.SSH.Algorithms = "ancient"
	dialError(t, f.SSH, 10*time.Second, "connect", `algorithms = "ancient" is unknown`)
}

func TestKeyTypes(t *testing.T) {
	d, bear := targetstest.SSHD(t), targetstest.Dropbear(t)
	for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		key := filepath.Join(t.TempDir(), "key")
		run(t, "ssh-keygen", "-q", "-t", kind, "-N", "", "-f", key)
		public, err := os.ReadFile(key + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		for file, s := range map[string]targets.SSH{
			filepath.Join(d.Dir, "authorized_keys"):                    d.SSH,
			filepath.Join(bear.Dir, "home", ".ssh", "authorized_keys"): bear.SSH,
		} {
			if err := os.WriteFile(file, public, 0o600); err != nil {
				t.Fatal(err)
			}
			s.Key = key
			dial(t, s, targets.DialOptions{}).Close()
		}
	}
}

// Dropbear without an RSA key fails an assertion when it agrees to RSA, and then
// just closes the connection.
func TestDropbearWithOneHostKey(t *testing.T) {
	for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		key := filepath.Join(t.TempDir(), "key")
		run(t, "dropbearkey", "-t", kind, "-f", key)
		d := targetstest.Dropbear(t, "-r", key)
		s := d.SSH
		s.KnownHosts = filepath.Join(d.Dir, "none")
		dialError(t, s, 20*time.Second, "handshake", "it is unknown", fmt.Sprintf("[127.0.0.1]:%d ", s.Port))
		// A device that had an RSA key until it was re-flashed.
		old := filepath.Join(t.TempDir(), "old")
		run(t, "ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", old)
		public, err := os.ReadFile(old + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		s.HostKeys = []string{string(public)}
		dialError(t, s, 20*time.Second, "handshake", "host_keys pins ssh-rsa")
	}
}
