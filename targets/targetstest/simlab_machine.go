package targetstest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

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

	listener net.Listener // its SSH server; nil: down
	gone     bool
	goneFrom string         // a kernel
	boots    map[string]int // kernel -> times it was started
	panics   map[string][]int
	cutIn    int // trials until the link is cut; 0: never
}

// simInit is the first process of a machine; $1 is its folder, seen as /mnt there,
// $2 the folder of tests, whose own mounts it must not hold.
// Its children are everything that lost its parent, and are waited for.
const simInit = `set -e
read -r pid rest </proc/self/stat
cd /
mount -t proc proc /proc
while read -r device at rest; do
	case $at in "$2"/*) umount -l "$at" ;; esac
done </proc/mounts
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
echo "$KERNSWEEP_KERNEL $(cat "$KERNSWEEP_IMAGE")" >>"${0%/*}/booted"
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
	write(t, m.file("booted"), "")
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
	port, reserved := reservePort(t)
	m.SSH = targets.SSH{Host: "127.0.0.1", Port: port, User: "root", ConfigFile: "none",
		Key: m.file("keys/client"), HostKeys: []string{hostLine}}
	m.serve(t, reserved)
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

// reservePort is a port of 127.0.0.1 that stays ours while nobody listens there,
// so that a machine that is down refuses connections. reserved is closed last.
func reservePort(t testing.TB) (port int, reserved *os.File) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	reserved = os.NewFile(uintptr(fd), "reserved")
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	if err != nil {
		t.Fatal(err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*unix.SockaddrInet4).Port, reserved
}

// accept serves connections until l is closed.
func (m *SimMachine) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		m.wg.Go(func() { m.connection(c) })
	}
}

// serve takes boot requests until the end of the test.
func (m *SimMachine) serve(t testing.TB, reserved *os.File) {
	t.Helper()
	if err := syscall.Mkfifo(m.file("ask"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask, err := os.OpenFile(m.file("ask"), os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		m.requests(ask)
	}()
	t.Cleanup(func() {
		ask.Close()
		<-asked
		m.down()
		m.wg.Wait()
		reserved.Close()
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
