package targetstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// DeviceOptions say how a device differs from an ordinary one.
type DeviceOptions struct {
	Proc     bool              // /proc is mounted
	Hostname string            // "" = the controller's
	Files    map[string]string // further files: path on the device -> text
	Dash     bool              // its shell is dash, which has no tools of its own
	Without  []string          // programs that it lacks; a BusyBox shell has some all the same
	Setup    string            // shell script run before its server starts, the root folder in $R
	Header   []byte            // what stands in /bin/busybox instead of a program
	Args     []string          // of Dropbear
}

// Device starts a small device: Dropbear and BusyBox in a root folder and a mount
// namespace of their own, made by the test, which must be root. Root is the folder.
func Device(t testing.TB, o DeviceOptions) (d *Daemon, root string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a device in a root folder of its own, and must be root for it")
	}
	d = newDaemon(t)
	d.SSH.User = "root"
	root = filepath.Join(d.Dir, "device")
	for _, dir := range []string{"bin", "dev", "proc", "etc", "lib", "root/.ssh", "tmp", "var/tmp", "run", "opt", "usr/sbin"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, minor := range map[string]int{"null": 3, "zero": 5, "random": 8, "urandom": 9} {
		if err := syscall.Mknod(filepath.Join(root, "dev", name), syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(root, "dev", name), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o.programs(t, root)
	keys, err := os.ReadFile(filepath.Join(d.Dir, "authorized_keys"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"etc/passwd": "root::0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n", "root/.ssh/authorized_keys": string(keys)}
	for name, text := range o.Files {
		files[name] = text
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name), text)
	}
	out, err := exec.Command(Tool(t, "dropbearconvert", "/usr/bin/dropbearconvert"), "openssh", "dropbear",
		filepath.Join(d.Dir, "host_ed25519"), filepath.Join(root, "etc/host_key")).CombinedOutput()
	if err != nil {
		t.Fatalf("dropbearconvert: %v: %s", err, out)
	}
	script := "R=$1; shift\n" + o.Setup + "\n"
	if o.Proc {
		script += "mount -t proc proc \"$R/proc\" || exit 1\n"
	}
	if o.Hostname != "" {
		write(t, filepath.Join(d.Dir, "hostname"), o.Hostname)
		script += fmt.Sprintf("cat %s >/proc/sys/kernel/hostname || exit 1\n", filepath.Join(d.Dir, "hostname")) // hostname(1) takes no odd ones
	}
	argv := append([]string{Tool(t, "unshare"), "-m", "-u", "/bin/sh", "-c", script + `exec "$@"`, "sh", root,
		Tool(t, "chroot", "/usr/sbin/chroot"), root, "/usr/sbin/dropbear", "-F", "-E", "-p", fmt.Sprintf("127.0.0.1:%d", d.SSH.Port), "-r", "/etc/host_key", "-P", "/dev/null"}, o.Args...)
	d.start(t, exec.Command(argv[0], argv[1:]...), "Not backgrounding")
	d.awaitPort(t)
	return d, root
}

var library = regexp.MustCompile(`(/\S+) \(0x`)

// programs puts Dropbear, what it is linked with, and BusyBox into place.
func (o DeviceOptions) programs(t testing.TB, root string) {
	t.Helper()
	dropbear, busybox := Tool(t, "dropbear", "/usr/sbin/dropbear"), Tool(t, "busybox", "/bin/busybox")
	copied := map[string]string{dropbear: "/usr/sbin/dropbear", busybox: "/bin/box"}
	if o.Dash {
		copied[Tool(t, "dash")] = "/bin/dash"
	}
	out, err := exec.Command(Tool(t, "ldd"), dropbear).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", dropbear, err)
	}
	for _, m := range library.FindAllStringSubmatch(string(out), -1) {
		copied[m[1]] = m[1]
	}
	for from, to := range copied {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(root, to)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, to), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err = exec.Command(busybox, "--list").Output()
	if err != nil {
		t.Fatalf("busybox --list: %v", err)
	}
	for _, name := range strings.Fields(string(out)) {
		if name == "busybox" && o.Header != nil || slices.Contains(o.Without, name) {
			continue
		}
		box := "box"
		if name == "sh" && o.Dash {
			box = "dash"
		}
		if err := os.Symlink(box, filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	if o.Header != nil {
		if err := os.WriteFile(filepath.Join(root, "bin/busybox"), o.Header, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Fingerprint is that of the server's ed25519 key, "SHA256:…".
func (d *Daemon) Fingerprint(t testing.TB) string {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(d.HostKey))
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(key)
}
