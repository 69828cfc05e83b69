package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// addTo runs target add for a machine, with the configuration in a folder of its own.
func addTo(t *testing.T, s targets.SSH, dir string, args ...string) (status int, out, errs string) {
	t.Helper()
	return addUnder(t, t.Context(), s, dir, args...)
}

func addUnder(t *testing.T, ctx context.Context, s targets.SSH, dir string, args ...string) (int, string, string) {
	t.Helper()
	user := s.User
	if user != "" {
		user += "@"
	}
	all := []string{"-f", filepath.Join(dir, "testbeds.hcl"), "--runs", filepath.Join(dir, "runs"), "target", "add",
		"ssh://" + user + net.JoinHostPort(s.Host, itoa(s.Port)), "--ssh-config", "none", "--known-hosts", s.KnownHosts}
	if s.Key != "" {
		all = append(all, "--key", s.Key)
	}
	var o, e bytes.Buffer
	start := time.Now()
	status := execute(ctx, append(all, args...), strings.NewReader(""), &o, &e, os.LookupEnv)
	if took := time.Since(start); took > addTime+time.Second {
		t.Errorf("it took %v, and %v is the most", took, addTime)
	}
	for _, r := range o.String() + e.String() {
		if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Errorf("the output drives a terminal: %q\n%q", r, o.String()+e.String())
			break
		}
	}
	return status, o.String(), e.String()
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// filesOf lists everything below a folder: names, kinds, sizes.
func filesOf(t *testing.T, root string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasPrefix(p, filepath.Join(root, "proc")) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		size := info.Size()
		if d.IsDir() {
			size = 0
		}
		list = append(list, p+" "+info.Mode().String()+" "+itoa(int(size)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// elfHeader is the beginning of a 32-bit program for a machine.
func elfHeader(data byte, machine byte) []byte {
	h := make([]byte, 64)
	copy(h, "\x7fELF\x01")
	h[5], h[6] = data, 1
	if data == 2 {
		h[17], h[19] = 2, machine
	} else {
		h[16], h[18] = 2, machine
	}
	return h
}

// TestAddDevices adds unlike devices: what is found is right, and nothing is left
// behind there.
func TestAddDevices(t *testing.T) {
	full := "for d in tmp var/tmp run opt root; do mount -t tmpfs -o size=4k,mode=755 tmpfs \"$R/$d\" || exit 1; done\n" +
		"mkdir -p \"$R/root/.ssh\"; cp \"$R/../authorized_keys\" \"$R/root/.ssh/\" && chmod 700 \"$R/root/.ssh\"\n" +
		"for d in tmp var/tmp run opt root; do dd if=/dev/zero of=\"$R/$d/fill\" bs=4096 2>/dev/null; done; true"
	for _, c := range []struct {
		name string
		o    targetstest.DeviceOptions
		want []string
	}{
		{"dropbear with /proc", targetstest.DeviceOptions{Proc: true, Hostname: "ap-7", Files: map[string]string{"etc/openwrt_release": "DISTRIB_DESCRIPTION='OpenWrt 18.06.1 r7258'\n"}},
			[]string{`target "ap_7"`, `arch = "amd64"`, "OpenWrt 18.06.1", "dropbear", "SFTP          no", "BusyBox       v1."}},
		{"no /proc, big-endian MIPS by its header", targetstest.DeviceOptions{Header: elfHeader(2, 8)},
			[]string{`arch = "mips"`, "big-endian", "float         n/a (/proc/cpuinfo is not readable)", "memory        n/a (/proc/meminfo is not readable)"}},
		{"no /proc, little-endian MIPS by its header", targetstest.DeviceOptions{Header: elfHeader(1, 8)}, []string{`arch = "mipsle"`, "little-endian"}},
		{"few tools", targetstest.DeviceOptions{Dash: true, Without: []string{"dd", "od", "head", "hexdump", "printf", "awk", "readlink", "df", "date", "busybox", "adjtimex", "tr"}},
			[]string{`arch = "amd64"`, "clock         n/a (date", "room unknown", "BusyBox       n/a"}},
		{"nothing that reads a program", targetstest.DeviceOptions{Dash: true, Without: []string{"dd", "head", "od", "hexdump", "cat"}},
			[]string{"architecture  n/a (no ELF header", "# arch: not found out"}},
		{"full disk", targetstest.DeviceOptions{Proc: true, Setup: full}, []string{"/tmp (full)", `arch = "amd64"`}},
		{"read-only root", targetstest.DeviceOptions{Proc: true, Setup: `mount --bind "$R" "$R" && mount -o remount,bind,ro "$R" && R=$(cd "$R" && pwd) || exit 1`},
			[]string{"no folder takes a program and runs it", "(not writable)"}},
		{"hostile words", targetstest.DeviceOptions{Proc: true, Hostname: "e\x1b[2J\u202evil",
			Files: map[string]string{"etc/os-release": "PRETTY_NAME=\"\x1b]0;pwned\a${env(\"HOME\")} \u202e*/ <script>alert(1)</script>\"\n",
				"proc_mtd": "", "boot/grub/grub.cfg": "x", "boot/\x1b[31mred": "x"}},
			[]string{`target "e2jvil"`, "<script>", "GRUB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, root := targetstest.Device(t, c.o)
			before := filesOf(t, root)
			dir := t.TempDir()
			status, out, errs := addTo(t, d.SSH, dir, "--write")
			if status != 0 {
				t.Fatalf("status %d\n%s\n%s\n%s", status, out, errs, d.Log())
			}
			for _, w := range c.want {
				if !strings.Contains(out, w) {
					t.Errorf("%q is missing in\n%s", w, out)
				}
			}
			if after := filesOf(t, root); !slices.Equal(before, after) {
				t.Errorf("the device has changed:\n%s", strings.Join(differing(before, after), "\n"))
			}
			if status := execute(t.Context(), []string{"-f", filepath.Join(dir, "testbeds.hcl"), "validate"}, strings.NewReader(""), new(bytes.Buffer), new(bytes.Buffer), os.LookupEnv); status != 0 {
				t.Errorf("what was written is not valid: %d", status)
			}
		})
	}
}

func differing(a, b []string) []string {
	var out []string
	for _, l := range a {
		if !slices.Contains(b, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range b {
		if !slices.Contains(a, l) {
			out = append(out, "+ "+l)
		}
	}
	return out
}

// TestAddRefusals: what cannot be looked at is refused in words, within ten
// seconds, and nothing is written.
func TestAddRefusals(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("TEST_ADD_PASSWORD", "wrong")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	password := targetstest.NewFake(t, targetstest.FakeOptions{Password: "right"}).SSH
	password.Key = ""
	password.KnownHosts = filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(password.KnownHosts, []byte("[127.0.0.1]:"+itoa(password.Port)+" "+password.HostKeys[0]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed := targetstest.SSHD(t)
	known, err := os.ReadFile(changed.SSH.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	other := targetstest.KeyFile(t, filepath.Join(t.TempDir(), "other"))
	if err := os.WriteFile(changed.SSH.KnownHosts, bytes.ReplaceAll(known, []byte(changed.HostKey), []byte(other)), 0o600); err != nil {
		t.Fatal(err)
	}
	nobody := targetstest.SSHD(t).SSH
	nobody.Key = filepath.Join(t.TempDir(), "stranger")
	targetstest.KeyFile(t, nobody.Key)
	for _, c := range []struct {
		name string
		ssh  targets.SSH
		args []string
		want []string
	}{
		{"a host that accepts and says nothing", targets.SSH{Host: "127.0.0.1", Port: silent.Addr().(*net.TCPAddr).Port, KnownHosts: changed.SSH.KnownHosts}, nil,
			[]string{"it accepted the connection and said nothing", "target add waits 10s in all"}},
		{"a forced command", targetstest.SSHD(t, `ForceCommand echo "choose: 1 status 2 quit"`).SSH, nil, []string{"did not run the command through /bin/sh", "choose: 1 status"}},
		{"a menu without end", targetstest.SSHD(t, `ForceCommand sh -c 'while :; do echo "1 status 2 quit"; done'`).SSH, nil, []string{"prints without end", "1 status"}},
		{"a menu that waits", targetstest.SSHD(t, `ForceCommand sh -c 'echo "1 status 2 quit"; exec tail -f /dev/null'`).SSH, nil, []string{"target add waits 10s in all"}},
		{"rbash", targetstest.SSHDFor(t, targetstest.Login{Shell: "/bin/rbash"}).SSH, nil, []string{"did not run the command through /bin/sh", "restricted"}},
		{"a wrong password", password, []string{"--password-env", "TEST_ADD_PASSWORD"}, []string{"refused the log-in", "is the password right"}},
		{"a wrong key", nobody, nil, []string{"refused the log-in", "--key FILE"}},
		{"a changed host key", changed.SSH, []string{"--host-key", "SHA256:whatever"}, []string{"it changed", "known_hosts:1"}},
		{"nothing listens", targets.SSH{Host: "127.0.0.1", Port: targetstest.FreePort(t), KnownHosts: changed.SSH.KnownHosts}, nil, []string{"nothing listens on port"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			status, out, errs := addTo(t, c.ssh, dir, append(c.args, "--write")...)
			if status != exitInfra || out != "" {
				t.Errorf("status %d, %q", status, out)
			}
			for _, w := range c.want {
				if !strings.Contains(errs, w) {
					t.Errorf("%q is missing in %s", w, errs)
				}
			}
			if list, _ := os.ReadDir(dir); len(list) > 0 {
				t.Errorf("something was written: %v", list)
			}
		})
	}
}

// TestAddCutShort: whatever ends a look in the middle, the device is as before.
func TestAddCutShort(t *testing.T) {
	for _, how := range []string{"interrupted", "link cut"} {
		t.Run(how, func(t *testing.T) {
			d, root := targetstest.Device(t, targetstest.DeviceOptions{Without: []string{"chmod"}, Dash: true,
				Files: map[string]string{"bin/chmod": "#!/bin/sh\necho >/opt/started\nexec sleep 3\n"}, Setup: `chmod 755 "$R/bin/chmod"`})
			before, dir := filesOf(t, root), t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				status, out, _ := addUnder(t, ctx, d.SSH, dir, "--write")
				if want := map[string]int{"interrupted": exitInterrupted, "link cut": exitInfra}[how]; status != want || out != "" {
					t.Errorf("status %d, want %d: %s", status, want, out)
				}
			}()
			await(t, "the tiny program is written", func() bool {
				_, err := os.Stat(filepath.Join(root, "opt/started"))
				return err == nil
			})
			if how == "interrupted" {
				cancel()
			} else {
				for _, pid := range d.Children() {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			<-ended
			if list, _ := os.ReadDir(dir); len(list) > 0 {
				t.Errorf("something was written: %v", list)
			}
			await(t, "the device is as before", func() bool {
				_ = os.Remove(filepath.Join(root, "opt/started")) // the test's own
				return slices.Equal(before, filesOf(t, root))
			})
		})
	}
}

// TestAddSSHServers adds OpenSSH hosts of unlike kinds, and none twice.
func TestAddSSHServers(t *testing.T) {
	bash := targetstest.SSHD(t)
	dir := t.TempDir()
	for name, c := range map[string]struct {
		ssh  targets.SSH
		want []string
	}{
		"sshd_bash":    {bash.SSH, []string{"SFTP          yes", "SSH-2.0-OpenSSH"}},
		"sshd_dash":    {targetstest.SSHDFor(t, targetstest.Login{Shell: "/bin/dash"}).SSH, []string{"SFTP          yes"}},
		"without_sftp": {targetstest.SSHD(t, "#no-sftp").SSH, []string{"no sftp subsystem"}},
		"dropbear":     {targetstest.Dropbear(t).SSH, []string{"SSH-2.0-dropbear"}},
		"chatty":       {targetstest.SSHDFor(t, targetstest.Login{Shell: "/bin/bash", Files: map[string]string{".bashrc": "echo \"\x1b[2JWelcome, @@M places\"\n"}}).SSH, []string{`arch = "amd64"`}},
	} {
		status, out, errs := addTo(t, c.ssh, dir, "--name", name, "--write")
		if status != 0 {
			t.Errorf("%s: status %d: %s", name, status, errs)
		}
		for _, w := range c.want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, out)
			}
		}
	}
	again := targetstest.SSHD(t, "HostKey "+filepath.Join(bash.Dir, "host_ed25519"))
	line := "[127.0.0.1]:" + itoa(again.SSH.Port) + " " + bash.HostKey + "\n"
	if err := os.WriteFile(again.SSH.KnownHosts, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "testbeds.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	status, _, errs := addTo(t, again.SSH, dir, "--write")
	if status != exitUsage || !strings.Contains(errs, "it has the host key of target sshd_bash ("+filepath.Join(dir, "testbeds.hcl")+":") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs = addTo(t, bash.SSH, dir, "--write"); status != exitUsage || !strings.Contains(errs, "leads to 127.0.0.1:"+itoa(bash.SSH.Port)) {
		t.Errorf("status %d: %s", status, errs)
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "testbeds.hcl")); !bytes.Equal(before, after) {
		t.Errorf("the file has changed:\n%s", after)
	}
}

// TestAddThroughAJumpHost: the way is in the block, and belongs to the address.
func TestAddThroughAJumpHost(t *testing.T) {
	gate, behind := targetstest.SSHD(t), targetstest.SSHD(t)
	both := filepath.Join(t.TempDir(), "known_hosts")
	var lines []byte
	for _, d := range []*targetstest.Daemon{gate, behind} {
		b, err := os.ReadFile(d.SSH.KnownHosts)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, b...)
	}
	keys, err := os.ReadFile(filepath.Join(behind.Dir, "authorized_keys"))
	if err == nil {
		err = os.WriteFile(filepath.Join(gate.Dir, "authorized_keys"), keys, 0o600)
	}
	if err == nil {
		err = os.WriteFile(both, lines, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, dir := behind.SSH, t.TempDir()
	s.KnownHosts = both
	via := []string{"--via", "127.0.0.1:" + itoa(gate.SSH.Port), "--write"}
	status, out, errs := addTo(t, s, dir, via...)
	if status != 0 || !strings.Contains(out, `via         = ["127.0.0.1:`) {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	if status, _, errs = addTo(t, s, dir, via...); status != exitUsage || !strings.Contains(errs, "> 127.0.0.1:") {
		t.Errorf("again: status %d: %s", status, errs)
	}
}

// TestAddSlowDevice: when the time is up, what was told by then counts.
func TestAddSlowDevice(t *testing.T) {
	d, root := targetstest.Device(t, targetstest.DeviceOptions{Without: []string{"df"}, Dash: true,
		Files: map[string]string{"bin/df": "#!/bin/sh\nexec sleep 100\n"}, Setup: `chmod 755 "$R/bin/df"; mount -t tmpfs tmpfs "$R/opt"`})
	before := filesOf(t, root)
	status, out, errs := addTo(t, d.SSH, t.TempDir())
	for _, w := range []string{"this is not everything: the time was up", `arch = "amd64"`, "/tmp", "iperf2        n/a (the time was up"} {
		if status != 0 || !strings.Contains(out, w) {
			t.Errorf("status %d, %q is missing: %s\n%s", status, w, errs, out)
		}
	}
	await(t, "the device is as before", func() bool { return slices.Equal(before, filesOf(t, root)) })
}
