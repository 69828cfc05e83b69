package sshconn

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// Against real servers known_hosts means what it means to the system's ssh: each
// file is tried by both, and what is refused says what is missing and where.
func TestKnownHostsAsSSHReadsThem(t *testing.T) {
	t.Parallel()
	_, other := publicKey(t)
	for server, d := range servers(t) {
		port := fmt.Sprintf("[127.0.0.1]:%d", d.SSH.Port)
		for _, c := range []struct {
			name, file string
			say        string // "" = accepted
		}{
			{"with the port", port + " KEY", ""},
			{"without a port", "127.0.0.1 KEY", ""},
			{"another port", "[127.0.0.1]:1 KEY", "it is unknown"},
			{"wildcard", "127.0.*.? KEY", ""},
			{"wildcard with the port", "[127.0.0.*]:* KEY", ""},
			{"wildcard in the port, another key", "[127.0.0.*]:* OTHER", "it changed"},
			{"wildcard in the port, both keys", "[127.0.0.*]:* OTHER\n[*]:* KEY", ""},
			{"wildcard in the port, revoked", port + " KEY\n@revoked [*]:? OTHER\n@revoked [127.*]:* KEY", "@revoked"},
			{"wildcard in the port, negated", "[127.*]:*,!" + port + " KEY", "it is unknown"},
			{"negated", "127.*,!127.0.0.1 KEY", "it is unknown"},
			{"negated with the port", "[127.*]:*,!" + port + " KEY", "it is unknown"},
			{"hashed", xknownhosts.HashHostname(port) + " KEY", ""},
			{"hashed without a port", xknownhosts.HashHostname("127.0.0.1") + " KEY", ""},
			{"hashed, another name", xknownhosts.HashHostname("127.0.0.2") + " KEY", "it is unknown"},
			{"changed", port + " OTHER", "it changed"},
			{"changed, and right below", port + " OTHER\n" + port + " KEY", ""},
			{"changed without a port", "127.0.0.1 OTHER", "it is unknown"},
			{"comments and blanks", "# a comment\n\n  \t" + port + ",rig KEY a comment behind", ""},
			{"revoked", port + " KEY\n@revoked " + port + " KEY", "@revoked"},
			{"revoked everywhere", port + " KEY\n@revoked * KEY", "@revoked"},
			{"another is revoked", port + " KEY\n@revoked * OTHER", ""},
			{"an authority only", "@cert-authority " + port + " OTHER", "only a certificate authority is listed"},
			{"an authority and the key", "@cert-authority * OTHER\n" + port + " KEY", ""},
			{"empty", "", "it is unknown"},
		} {
			file := filepath.Join(t.TempDir(), "known")
			text := strings.NewReplacer("KEY", d.HostKey, "OTHER", other).Replace(c.file) + "\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := d.SSH
			s.KnownHosts = file
			conn, err := New(nil).Dial(t.Context(), s, targets.DialOptions{})
			if err == nil {
				conn.Close()
			}
			var link *targets.LinkError
			switch {
			case (err == nil) != (c.say == ""):
				t.Errorf("%s, %s: %v", server, c.name, err)
			case err != nil && (!errors.As(err, &link) || !link.Refused || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), file)):
				t.Errorf("%s, %s: %v", server, c.name, err)
			case err != nil && c.say == "it is unknown" && !strings.Contains(err.Error(), "\n"+port+" "+d.HostKey+"\n"):
				t.Errorf("%s, %s: the missing line is not there: %v", server, c.name, err)
			case err != nil && c.say == "it changed" && (!strings.Contains(err.Error(), file+":1") || !strings.Contains(err.Error(), "reinstalled")):
				t.Errorf("%s, %s: %v", server, c.name, err)
			}
			if server != "sshd" {
				continue // ssh reads the file alike for both
			}
			if said, theirs := systemAccepts(t, s); theirs != (err == nil) {
				t.Errorf("%s, %s: ssh accepts it: %v; kernsweep: %v\n%s", server, c.name, theirs, err, said)
			}
		}
	}
}

// systemAccepts says whether the system's ssh takes the host key of s.
func systemAccepts(t *testing.T, s targets.SSH) (string, bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), targetstest.Tool(t, "ssh"), "-F", "none", "-i", s.Key, "-p", fmt.Sprint(s.Port), "-o", "IdentitiesOnly=yes",
		"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "UpdateHostKeys=no", "-o", "GlobalKnownHostsFile=/dev/null",
		"-o", "UserKnownHostsFile="+s.KnownHosts, "127.0.0.1", "true").CombinedOutput()
	return string(out), err == nil
}

// The key may stand in any of several files, also one that does not exist is
// searched, and an alias is looked up without the port.
func TestSeveralKnownHostsFiles(t *testing.T) {
	d := targetstest.Dropbear(t)
	dir := t.TempDir()
	first, second, none := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "none")
	config := filepath.Join(dir, "config")
	for file, text := range map[string]string{
		first: "elsewhere " + d.HostKey + "\n", second: "rig7 " + d.HostKey + "\n",
		config: fmt.Sprintf("Host *\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n IdentitiesOnly yes\n UserKnownHostsFile %s %s %s\nHost right\n HostKeyAlias rig7\n"+
			"Host wrong\n HostKeyAlias rig8\n", d.SSH.Port, d.SSH.Key, none, first, second),
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dial(t, targets.SSH{Host: "right", ConfigFile: config}, targets.DialOptions{}).Close()
	dialError(t, targets.SSH{Host: "wrong", ConfigFile: config}, 20*time.Second, "handshake", "it is unknown", none, first, second, "\nrig8 "+d.HostKey+"\n")
}

// Old devices: one that speaks nothing but what is insecure is refused with what
// it offers, and let in where the target says so; then the journal says what was
// agreed on.
func TestLegacyDevices(t *testing.T) {
	rsa := filepath.Join(t.TempDir(), "rsa")
	run(t, "ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", rsa)
	public, err := os.ReadFile(rsa + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"key exchange":            {"KexAlgorithms diffie-hellman-group14-sha1,diffie-hellman-group1-sha1"},
		"group1 alone":            {"KexAlgorithms diffie-hellman-group1-sha1"},
		"exchange of groups":      {"KexAlgorithms diffie-hellman-group-exchange-sha1"},
		"ciphers":                 {"Ciphers aes128-cbc,3des-cbc"},
		"MACs":                    {"MACs hmac-sha1-96", "Ciphers aes128-ctr"},
		"all of a router of 2009": {"KexAlgorithms diffie-hellman-group1-sha1", "Ciphers 3des-cbc", "MACs hmac-sha1-96", "HostKeyAlgorithms ssh-rsa"},
	} {
		t.Run(name, func(t *testing.T) {
			d := targetstest.SSHD(t, append(lines, "HostKey "+rsa)...)
			d.SSH.HostKeys = []string{string(public)}
			d.SSH.Algorithms = "legacy"
			var notes []string
			c, err := New(nil).Dial(t.Context(), d.SSH, targets.DialOptions{Note: func(n string) { notes = append(notes, n) }})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			c.Close()
			if len(notes) != 1 {
				t.Errorf("%s: notes %q", name, notes)
				return
			}
			agreed := 0
			for _, l := range lines { // the note names one of what each line allows
				for _, word := range strings.Split(strings.Fields(l)[1], ",") {
					if strings.Contains(notes[0], word) {
						agreed++
						break
					}
				}
			}
			if agreed != len(lines) || !strings.Contains(notes[0], "host key ssh-rsa") && !strings.Contains(notes[0], "host key rsa-sha2") {
				t.Errorf("%s: note %q", name, notes[0])
			}
			d.SSH.Algorithms = ""
			dialError(t, d.SSH, 20*time.Second, "handshake", "too old", `algorithms = "legacy"`)
		})
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"[*]:*", "[rig]:2222", true}, {"[*]:22?2", "[rig]:2222", true}, {"[*]:?", "[rig]:2222", false}, {"*", "", true}, {"?", "", false},
		{"a*b*c", "axxbyyc", true}, {"a*b*c", "axxbyy", false}, {"", "", true}, {"", "a", false}, {"[10.0.0.*]:2*", "[10.0.0.77]:22", true},
	} {
		if got := glob(c.pattern, c.name); got != c.want {
			t.Errorf("%q against %q: %v", c.pattern, c.name, got)
		}
	}
}
