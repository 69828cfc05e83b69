package targetstest

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

// SimMachine is a machine of a SimLab.
type SimMachine struct {
	Name string
	SSH  targets.SSH

	dir    string
	config *ssh.ServerConfig
	wg     sync.WaitGroup
	booter sync.Mutex // one boot at a time

	mu     sync.Mutex
	conns  map[net.Conn]bool
	kernel string    // that runs; "" = it is down
	init   int       // pid of its first process
	system *exec.Cmd // the namespaces
	gone   bool
	boots  map[string]int // kernel -> times it was started
	panics map[string][]int
	cutIn  int // trials until the link is cut; 0: never
}

// simInit is the first process of a machine; $1 is its folder, seen as /mnt there.
// Its children are everything that lost its parent, and are waited for.
const simInit = `set -e
read -r pid rest </proc/self/stat
cd /
mount -t proc proc /proc
mount --bind "$1" /mnt
mount -t tmpfs -o noexec,size=64m tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount --bind /mnt/disk /tmp
mount --bind /mnt/disk /var/tmp
mount --bind /mnt/boot/boot_id /proc/sys/kernel/random/boot_id
mount --bind /mnt/boot/cmdline /proc/cmdline
mount --bind /mnt/boot/uptime /proc/uptime
mount --bind /mnt/boot/sys /sys/kernel
sleep infinity </dev/null &
echo "$pid"
exec >/dev/null
wait $!
`

// Programs of the machine, before those of the test's own.
func simPrograms() map[string]string {
	return map[string]string{
		"uname": `case "$1" in -r) exec cat /mnt/boot/release ;; esac; exec /bin/uname "$@"`,
		"dmesg": `echo "[    0.000000] Linux version $(cat /mnt/boot/release) (sim)"; echo "[    0.100000] Command line: $(cat /proc/cmdline)"`,
		"payload": `read -r id </proc/sys/kernel/random/uuid
read -r boot </proc/sys/kernel/random/boot_id
echo "$id begin $boot $1" >>/mnt/ran
sleep "$2"
echo "time: $2"
echo "token: $id"
echo "$id end $boot $1" >>/mnt/ran`,
	}
}

// simBoot asks the machine for a kernel and waits until it is up, or not.
const simBoot = `#!/bin/sh
a=$0.answer.$$
mkfifo "$a" || exit 1
echo "$a $KERNSWEEP_KERNEL $KERNSWEEP_NONCE" >"${0%/*}/ask"
read -r s <"$a"
rm -f "$a"
exit "${s:-1}"
`

func newSimMachine(t testing.TB, dir, name string) *SimMachine {
	t.Helper()
	m := &SimMachine{Name: name, dir: filepath.Join(dir, name), conns: map[net.Conn]bool{}, boots: map[string]int{}}
	for _, d := range []string{"bin", "disk", "home", "boot", "boot/sys", "keys"} {
		if err := os.MkdirAll(m.file(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.program(t, "boot.sh", simBoot)
	for p, text := range simPrograms() {
		m.program(t, "bin/"+p, "#!/bin/sh\n"+text+"\n")
	}
	write(t, m.file("ran"), "")
	client := KeyFile(t, m.file("keys/client"))
	hostLine := KeyFile(t, m.file("keys/host"))
	private, err := os.ReadFile(m.file("keys/host"))
	if err != nil {
		t.Fatal(err)
	}
	hostKey, err := ssh.ParsePrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	m.config = serverConfig(FakeOptions{}, client)
	m.config.AddHostKey(hostKey)
	Tool(t, "unshare")
	Tool(t, "nsenter")
	l := listen(t)
	m.SSH = targets.SSH{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "root", ConfigFile: "none",
		Key: m.file("keys/client"), HostKeys: []string{hostLine}}
	m.serve(t, l)
	if err := m.start(SimGood, ""); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *SimMachine) file(name string) string { return filepath.Join(m.dir, name) }

func (m *SimMachine) program(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(m.file(name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// serve accepts connections and boot requests until the end of the test.
func (m *SimMachine) serve(t testing.TB, l net.Listener) {
	t.Helper()
	if err := syscall.Mkfifo(m.file("ask"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask, err := os.OpenFile(m.file("ask"), os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	m.wg.Go(func() { m.requests(ask) })
	m.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			m.wg.Go(func() { m.connection(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		ask.Close()
		m.down()
		m.wg.Wait()
	})
}

// requests boots what boot.sh asks for.
func (m *SimMachine) requests(ask *os.File) {
	for in := bufio.NewScanner(ask); in.Scan(); {
		f := strings.Fields(in.Text())
		if len(f) < 2 {
			continue
		}
		status, nonce := "0", ""
		if len(f) > 2 {
			nonce = f[2]
		}
		if m.start(f[1], nonce) != nil {
			status = "1"
		}
		answer(f[0], status)
	}
}

// answer writes to a FIFO whose reader may be about to open it, or may be dead.
func answer(path, text string) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(2 * time.Second)
	for {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			fmt.Fprintln(f, text)
			f.Close()
			return
		}
		if !errors.Is(err, syscall.ENXIO) {
			return
		}
		select {
		case <-tick.C:
		case <-end:
			os.Remove(path) // who asked was killed
			return
		}
	}
}

// down ends the system: its links, its processes and its memory.
func (m *SimMachine) down() {
	m.mu.Lock()
	system, pid := m.system, m.init
	m.system, m.init, m.kernel = nil, 0, ""
	for c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	if system != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
		_ = system.Wait()
	}
}

// start boots a kernel.
func (m *SimMachine) start(kernel, nonce string) error {
	m.booter.Lock()
	defer m.booter.Unlock()
	m.down()
	m.mu.Lock()
	m.boots[kernel]++
	n, gone := m.boots[kernel], m.gone
	panics := false
	for _, p := range m.panics[kernel] {
		panics = panics || p == n
	}
	m.mu.Unlock()
	if gone || panics {
		return nil // it was asked for; nobody answers
	}
	if err := m.prepare(kernel, nonce); err != nil {
		return err
	}
	argv := []string{"unshare", "-m", "-p", "-f", "--kill-child", "--propagation", "private", "/bin/sh", "-c", simInit, "init", m.dir}
	if os.Geteuid() != 0 {
		argv = append([]string{"unshare", "-r"}, argv[1:]...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // for the death signal: the thread must not end before the process
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, bad := strconv.Atoi(strings.TrimSpace(line))
	if err = errors.Join(err, bad); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("machine %s does not come up: %w: %s", m.Name, err, &said)
	}
	m.mu.Lock()
	m.system, m.init, m.kernel = cmd, pid, kernel
	m.mu.Unlock()
	return nil
}

// prepare writes what the system will say of itself.
func (m *SimMachine) prepare(kernel, nonce string) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	files := map[string]string{
		"boot/boot_id": fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		"boot/cmdline": strings.TrimSpace("root=/dev/sim "+nonce) + "\n",
		"boot/uptime":  "0.50 0.50\n",
		"boot/release": simRelease(kernel) + "\n",
	}
	ext := m.file("boot/sys/sched_ext")
	if err := os.RemoveAll(ext); err != nil {
		return err
	}
	if kernel == SimOther {
		if err := os.MkdirAll(ext+"/root", 0o755); err != nil {
			return err
		}
		files["boot/sys/sched_ext/state"] = "enabled\n"
		files["boot/sys/sched_ext/root/ops"] = "sim\n"
	}
	for name, text := range files {
		if err := os.WriteFile(m.file(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (m *SimMachine) hcl() string {
	return fmt.Sprintf(`
target %q {
  arch       = %q
  known_good = kernel.%s
  ssh {
    host      = "127.0.0.1"
    port      = %d
    user      = "root"
    key       = %q
    host_keys = [%q]
    config    = "none"
  }
  boot "command" {
    command = [%q]
    cmdline = true
  }
  timeouts {
    boot = "3s"
    down = "3s"
    exec = "10s"
  }
}
`, m.Name, runtime.GOARCH, SimGood, m.SSH.Port, m.SSH.Key, m.SSH.HostKeys[0], m.file("boot.sh"))
}
