package sshconn

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

func TestResolveWithAndWithoutSSH(t *testing.T) {
	targetstest.Tool(t, "ssh")
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	text := `
Host router
 HostName 192.0.2.7
 Port 2222
 User admin
 HostKeyAlias wl500
 IdentityFile ~/.ssh/id_router
 IdentitiesOnly yes
 UserKnownHostsFile /tmp/a /tmp/b
 ConnectTimeout 7
 ProxyJump alice@gate:2200,inner
Host piped
 ProxyCommand nc -X %h %p %r
`
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{os.Getenv("PATH"), dir} {
		t.Setenv("PATH", path)
		d := New(nil)
		route, err := d.route(context.Background(), targets.SSH{Host: "router", ConfigFile: config})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, h := range route {
			names = append(names, h.String())
		}
		if len(names) != 3 || names[0] != "alice@gate:2200" || names[2] != "router (admin@192.0.2.7:2222)" {
			t.Errorf("route %q", names)
		}
		h := route[2]
		if h.knownName() != "wl500:22" || !h.identitiesOnly || h.connectTimeout != 7*time.Second ||
			!slices.Contains(h.identities, home+"/.ssh/id_router") || !slices.Equal(h.known[:2], []string{"/tmp/a", "/tmp/b"}) {
			t.Errorf("got %+v", h)
		}
		route, err = d.route(context.Background(), targets.SSH{Host: "router", User: "root", Port: 22, Via: []string{"x"}, ConfigFile: config})
		if err != nil || len(route) != 2 || route[1].String() != "router (root@192.0.2.7:22)" {
			t.Errorf("explicit values: %v, %v", route, err)
		}
		route, err = d.route(context.Background(), targets.SSH{Host: "piped", User: "u", ConfigFile: config})
		if err != nil || len(route) != 1 || route[0].proxyCommand != "nc -X piped 22 u" {
			t.Errorf("proxy command: %+v, %v", route, err)
		}
		route, err = d.route(context.Background(), targets.SSH{Host: "router", User: "u", ConfigFile: "none"})
		if err != nil || len(route) != 1 || route[0].addr() != "router:22" {
			t.Errorf("no configuration: %+v, %v", route, err)
		}
	}
}

// Without an SSH configuration or agent the target's key is all there is to
// log in to a jump host with.
func TestJumpHostGetsTheTargetsKey(t *testing.T) {
	d := targetstest.SSHD(t)
	route, err := New(nil).route(t.Context(), targets.SSH{Host: "box", User: "root", Key: d.SSH.Key, Via: []string{"root@gate:2222"}, ConfigFile: "none"})
	if err != nil {
		t.Fatal(err)
	}
	a, err := New(nil).auth(route[0])
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	if route[0].name != "gate" || !slices.Contains(a.offered, "key "+d.SSH.Key) {
		t.Errorf("%s is offered %q", route[0], a.offered)
	}
}

func TestEndlessJumps(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "Host h%d\n ProxyJump h%d\n", i, (i+1)%12)
	}
	if err := os.WriteFile(config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(nil).route(context.Background(), targets.SSH{Host: "h0", ConfigFile: config})
	if err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("got %v", err)
	}
}

func TestConfigurationsThatCannotBeRead(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("Host x\n NoSuchKeyword 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dialError(t, targets.SSH{Host: "x", ConfigFile: config}, 10*time.Second, "connect", "ssh -G", "terminating")
	dialError(t, targets.SSH{Host: "x", ConfigFile: config + "-none"}, 10*time.Second, "connect", "No such file")
}

// Without a configuration nothing is asked of ssh, and what is known is the same.
func TestResolveWithoutAConfigurationIsAsSSHHasIt(t *testing.T) {
	program, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"127.0.0.1", "Router.Example", "fe80::1", "r1"} {
		q := query{name: name, file: "none"}
		want, err := askSSH(t.Context(), program, q)
		if err != nil {
			t.Fatal(err)
		}
		got, err := New(nil).lookUp(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"hostname", "proxycommand", "proxyjump", "hostkeyalias", "globalknownhostsfile"} {
			if got.some(key) != want.some(key) {
				t.Errorf("%s: %s is %q, and ssh says %q", name, key, got.some(key), want.some(key))
			}
		}
	}
}
