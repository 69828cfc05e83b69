package sshconn

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skeema/knownhosts"
	"go.uber.org/zap"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// publicKey makes a key for known_hosts.
func publicKey(t *testing.T) (ssh.PublicKey, string) {
	t.Helper()
	line := targetstest.KeyFile(t, filepath.Join(t.TempDir(), "key"))
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return key, line
}

func TestKnownHostsEntries(t *testing.T) {
	device, deviceLine := publicKey(t)
	other, otherLine := publicKey(t)
	old, oldLine := publicKey(t)
	_, caLine := publicKey(t)
	lines := []string{
		"bare " + deviceLine,
		"[ported]:2222 " + deviceLine,
		"any*,!anybut " + deviceLine,
		"@cert-authority *.farm.example " + caLine,
		"@revoked stolen " + oldLine,
		"stolen " + deviceLine,
		"[198.51.100.7]:2222,198.51.100.7 " + deviceLine,
		"pair " + otherLine,
		"pair " + deviceLine,
		"@cert-authority mixed " + caLine,
		"mixed " + deviceLine,
		xknownhosts.HashHostname("veiled") + " " + deviceLine,
		xknownhosts.HashHostname("[veiled2]:2222") + " " + deviceLine,
	}
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		port int
		key  ssh.PublicKey
		want string // "" = accepted
	}{
		{"bare", 22, device, ""},
		{"bare", 22, other, "it changed"},
		{"bare", 2222, device, ""},
		{"bare", 2222, other, "[bare]:2222 ssh-ed25519 "},
		{"ported", 2222, device, ""},
		{"ported", 22, device, "it is unknown"},
		{"any7", 22, device, ""},
		{"any7", 2222, device, ""},
		{"anybut", 22, device, "it is unknown"},
		{"veiled", 22, device, ""},
		{"veiled2", 2222, device, ""},
		{"veiled2", 22, device, "it is unknown"},
		{"pair", 22, device, ""},
		{"pair", 22, other, ""},
		{"stolen", 22, device, ""},
		{"stolen", 22, old, "@revoked"},
		{"stolen", 2222, old, "@revoked"},
		{"x.farm.example", 22, device, "only a certificate authority"},
		{"mixed", 22, device, ""},
		{"mixed", 22, other, "it changed"},
		{"198.51.100.7", 2222, device, ""},
		{"198.51.100.7", 22, device, ""},
	} {
		checkKnown(t, file, c.name, c.port, c.key, c.want)
	}
}

// checkKnown judges key by file; want is a part of the refusal, "" for none.
func checkKnown(t *testing.T, file, name string, port int, key ssh.PublicKey, want string) {
	t.Helper()
	h := host{name: name, hostName: name, port: port, user: "u", known: []string{file}, target: &targets.SSH{}}
	check, err := New(nil).hostKeys(h, targets.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second answer comes from memory
		err = check.judge(placeholder{}, key)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s port %d: %v; want accepted", name, port, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file)):
			t.Errorf("%s port %d: %v; want %q and the file", name, port, err, want)
		}
	}
}

// placeholder is an address that no entry has.
type placeholder struct{}

func (placeholder) Network() string { return "tcp" }
func (placeholder) String() string  { return "203.0.113.1:22" }

func TestHostKeyTypeFollowsKnownHosts(t *testing.T) {
	dir := t.TempDir()
	var config []string
	lines := map[string]string{}
	for _, kind := range []string{"rsa", "ecdsa", "ed25519"} {
		file := filepath.Join(dir, kind)
		run(t, "ssh-keygen", "-q", "-t", kind, "-N", "", "-f", file)
		b, err := os.ReadFile(file + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		lines[kind] = strings.TrimSpace(string(b))
		config = append(config, "HostKey "+file)
	}
	d := targetstest.SSHD(t, config...)
	for kind, line := range lines {
		s := d.SSH
		s.KnownHosts = filepath.Join(dir, "known_"+kind)
		if err := os.WriteFile(s.KnownHosts, fmt.Appendf(nil, "[127.0.0.1]:%d %s\n", s.Port, line), 0o600); err != nil {
			t.Fatal(err)
		}
		dial(t, s, targets.DialOptions{}).Close()
		s.KnownHosts, s.HostKeys = "", []string{line}
		dial(t, s, targets.DialOptions{}).Close()
	}
}

func TestNewHostKeyAfterBoot(t *testing.T) {
	d := targetstest.SSHD(t)
	before, _ := publicKey(t)
	s := d.SSH
	s.NewHostKey = "after-boot"
	s.KnownHosts = filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(s.KnownHosts, []byte(knownhosts.Line([]string{fmt.Sprintf("127.0.0.1:%d", s.Port)}, before)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dialer := New(zap.NewNop())
	if _, err := dialer.Dial(ctx, s, targets.DialOptions{}); err == nil || !strings.Contains(err.Error(), "it changed") {
		t.Fatalf("without a boot: %v; want a refusal", err)
	}
	var notes []string
	note := func(n string) { notes = append(notes, n) }
	for _, o := range []targets.DialOptions{{AfterBoot: true, Note: note}, {Note: note}} {
		c, err := dialer.Dial(ctx, s, o)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	now, _, _, _, err := ssh.ParseAuthorizedKey([]byte(d.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], ssh.FingerprintSHA256(before)) || !strings.Contains(notes[0], ssh.FingerprintSHA256(now)) {
		t.Errorf("notes: %q; want one with both fingerprints", notes)
	}
	s.NewHostKey = ""
	if _, err := dialer.Dial(ctx, s, targets.DialOptions{AfterBoot: true}); err == nil {
		t.Error("a changed key was accepted on a target that does not allow it")
	}
}

func TestHostCertificates(t *testing.T) {
	dir := t.TempDir()
	key, ca := filepath.Join(dir, "host"), filepath.Join(dir, "ca")
	run(t, "ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", key)
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ca)
	run(t, "ssh-keygen", "-q", "-s", ca, "-I", "id", "-h", "-n", "127.0.0.1", key+".pub")
	d := targetstest.SSHD(t, "HostKey "+key, "HostCertificate "+key+"-cert.pub")
	b, err := os.ReadFile(ca + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"*", fmt.Sprintf("[127.0.0.1]:%d", d.SSH.Port)} {
		if err := os.WriteFile(d.SSH.KnownHosts, []byte("@cert-authority "+pattern+" "+string(b)), 0o600); err != nil {
			t.Fatal(err)
		}
		dial(t, d.SSH, targets.DialOptions{}).Close()
	}
	_, other := publicKey(t)
	if err := os.WriteFile(d.SSH.KnownHosts, []byte("@cert-authority * "+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dialError(t, d.SSH, 10*time.Second, "handshake", "host key refused")
}
