package targetstest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// Login is how the user of a daemon logs in. The daemon runs in a mount namespace
// of its own, in which the user database and the home directory are changed.
type Login struct {
	Shell string            // path of the login shell; "" = the caller's own
	Files map[string]string // in the home, which is empty otherwise: ".bashrc" -> text
}

// SSHDFor is SSHD with l as its user's log-in; bash reads its ~/.bashrc there.
func SSHDFor(t testing.TB, l Login, lines ...string) *Daemon {
	t.Helper()
	return sshdBehind(t, l.behind(t, filepath.Join(t.TempDir(), "home"), ""), append(lines, "SetEnv SHLVL=0")...)
}

// Dropbear starts Dropbear on 127.0.0.1 with the given further arguments. Its
// user has an empty home, since Dropbear has no option for authorized_keys.
func Dropbear(t testing.TB, args ...string) *Daemon {
	t.Helper()
	return DropbearFor(t, Login{}, args...)
}

// DropbearFor is Dropbear with l as its user's log-in.
func DropbearFor(t testing.TB, l Login, args ...string) *Daemon {
	t.Helper()
	dropbear := Tool(t, "dropbear", "/usr/sbin/dropbear")
	d := newDaemon(t)
	keys, err := os.ReadFile(filepath.Join(d.Dir, "authorized_keys"))
	if err != nil {
		t.Fatal(err)
	}
	hostKey := filepath.Join(d.Dir, "dropbear_key")
	out, err := exec.Command(Tool(t, "dropbearconvert", "/usr/bin/dropbearconvert"), "openssh", "dropbear",
		filepath.Join(d.Dir, "host_ed25519"), hostKey).CombinedOutput()
	if err != nil {
		t.Fatalf("dropbearconvert: %v: %s", err, out)
	}
	if !strings.Contains(strings.Join(args, " "), "-r ") {
		args = append(args, "-r", hostKey)
	}
	argv := append(l.behind(t, filepath.Join(d.Dir, "home"), string(keys)), dropbear,
		"-F", "-E", "-s", "-p", fmt.Sprintf("127.0.0.1:%d", d.SSH.Port), "-P", filepath.Join(d.Dir, "pid"))
	argv = append(argv, args...)
	d.start(t, exec.Command(argv[0], argv[1:]...), "Not backgrounding")
	d.awaitPort(t)
	return d
}

// behind makes the words before a daemon's command, which give it its namespace.
func (l Login) behind(t testing.TB, home, keys string) []string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{".ssh/authorized_keys": keys}
	for name, text := range l.Files {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	script := `mount --bind "$0" "$1" && shift && exec "$@"`
	if l.Shell != "" {
		script = fmt.Sprintf(`mount --bind %s /etc/passwd && `, l.database(t, u.Username)) + script
	}
	namespace := "-m"
	if os.Geteuid() != 0 {
		namespace = "-rm"
	}
	return []string{Tool(t, "unshare"), namespace, "/bin/sh", "-c", script, home, u.HomeDir}
}

// database writes a user database in which name has the shell.
func (l Login) database(t testing.TB, name string) string {
	t.Helper()
	was, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(was)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) == 7 && f[0] == name {
			f[6] = l.Shell
		}
		text.WriteString(strings.Join(f, ":") + "\n")
	}
	file := filepath.Join(t.TempDir(), "passwd")
	write(t, file, text.String())
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
