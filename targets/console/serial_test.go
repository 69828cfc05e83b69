package console

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// wire makes a terminal pair that stands for a serial line; by-id is a link as
// udev makes it.
func wire(t *testing.T) (far *os.File, device, byID string) {
	t.Helper()
	master, slave, err := openPTY()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	device = slave.Name()
	slave.Close()
	byID = filepath.Join(t.TempDir(), "usb-FTDI-if00-port0")
	if err := os.Symlink(device, byID); err != nil {
		t.Fatal(err)
	}
	return master, device, byID
}

func TestSerial(t *testing.T) {
	far, device, byID := wire(t)
	locks := t.TempDir()
	c := &Serial{Device: byID, Line: Line{Baud: 74880, Format: "7E2", Flow: "xonxoff"}, lockDir: locks}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	rw, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := termiosOf(t, far)
	want := uint32(unix.CREAD | unix.CLOCAL | unix.BOTHER | unix.CSTOPB) // a terminal pair has no parity
	if got.Ospeed != 74880 || got.Ispeed != 74880 || got.Cflag&want != want || got.Lflag != 0 || got.Oflag != 0 || got.Iflag&unix.IXON == 0 {
		t.Errorf("%+v", got)
	}
	lock := filepath.Join(locks, "LCK.."+strings.ReplaceAll(strings.TrimPrefix(device, "/dev/"), "/", "_"))
	if b, err := os.ReadFile(lock); err != nil || string(b) != fmt.Sprintf("%10d\n", os.Getpid()) {
		t.Errorf("%q %v", b, err)
	}
	fmt.Fprint(far, "U-Boot\r\n")
	expectRead(t, rw, "U-Boot\r\n")
	if _, err := rw.Write([]byte("\x03\x00\r")); err != nil {
		t.Fatal(err)
	}
	expectRead(t, far, "\x03\x00\r")
	if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{locks, t.TempDir()} { // with another folder only flock is left
		_, err = (&Serial{Device: device, lockDir: dir}).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "in use by") {
			t.Errorf("a second time: %v", err)
		}
	}
	closeEndsRead(t, rw)
	if _, err := os.Stat(lock); !os.IsNotExist(err) {
		t.Error("the lock is left:", err)
	}
}

func termiosOf(t *testing.T, f *os.File) *unix.Termios {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var got *unix.Termios
	if e := raw.Control(func(fd uintptr) { got, err = unix.IoctlGetTermios(int(fd), unix.TCGETS2) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	return got
}

func closeEndsRead(t *testing.T, rw io.ReadWriteCloser) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := rw.Read(make([]byte, 10))
		ended <- err
	}()
	if err := rw.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a read after Close succeeds")
		}
	case <-time.After(10 * time.Second):
		t.Error("Close does not end a read")
	}
}

// Who holds the port is named: by its lock file, or because it has it open. A
// lock whose process is gone is taken over.
func TestSerialInUse(t *testing.T) {
	_, device, _ := wire(t)
	other := exec.Command("sh", "-c", `exec 3<>"$0"; echo open; read x`, device)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	expectRead(t, out, "open\n")
	locks := t.TempDir()
	c := &Serial{Device: device, lockDir: locks}
	want := fmt.Sprintf("in use by process %d (sh)", other.Process.Pid)
	if _, err := c.Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	in.Close()
	other.Wait()
	name := filepath.Join(locks, "LCK.."+strings.ReplaceAll(strings.TrimPrefix(device, "/dev/"), "/", "_"))
	parent := os.Getppid()
	for _, c2 := range []struct {
		text string
		free bool
	}{
		{fmt.Sprintf("%10d\n", other.Process.Pid), true},
		{strconv.Itoa(other.Process.Pid) + " minicom joe\n", true},
		{"", true}, {"garbage", true},
		{string([]byte{byte(other.Process.Pid), byte(other.Process.Pid >> 8), byte(other.Process.Pid >> 16), 0}), true},
		{fmt.Sprintf("%10d minicom joe\n", parent), false},
	} {
		if err := os.WriteFile(name, []byte(c2.text), 0o644); err != nil {
			t.Fatal(err)
		}
		rw, err := c.Open(t.Context())
		switch {
		case (err == nil) != c2.free:
			t.Errorf("%q: %v", c2.text, err)
		case err != nil && !strings.Contains(err.Error(), fmt.Sprintf("process %d (", parent)):
			t.Errorf("%q: %v", c2.text, err)
		case err == nil:
			rw.Close()
		}
	}
}

func TestSerialThatIsNotThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ttyUSB0")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]string{
		"/dev/serial/by-id/usb-none": "is its adapter plugged in?",
		file:                         "no serial port",
	} {
		if _, err := (&Serial{Device: device, lockDir: t.TempDir()}).Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", device, err)
		}
	}
	for _, c := range []Serial{{}, {Device: "ttyUSB0"}, {Device: "/dev/x", Line: Line{Baud: 3}}, {Device: "/dev/x", Line: Line{Format: "9N1"}}, {Device: "/dev/x", Line: Line{Flow: "on"}}} {
		if c.Check() == nil {
			t.Errorf("%+v passes its check", c)
		}
	}
}

// An adapter that is unplugged ends the console with a sentence.
func TestSerialIsUnplugged(t *testing.T) {
	far, device, _ := wire(t)
	rw, err := (&Serial{Device: device, lockDir: t.TempDir()}).Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer rw.Close()
	far.Close()
	if _, err := rw.Read(make([]byte, 10)); err == nil || !strings.Contains(err.Error(), "unplugged?") {
		t.Error(err)
	}
}

// A console on another machine, through its sshd, with a terminal there and
// without.
func TestSSHConsole(t *testing.T) {
	t.Parallel() // it waits
	d := targetstest.SSHD(t)
	base := SSH{Host: d.SSH.Host, Port: d.SSH.Port, Key: d.SSH.Key, KnownHosts: d.SSH.KnownHosts, ConfigFile: "none"}
	for _, pty := range []bool{false, true} {
		c := base
		c.PTY, c.Break = pty, "^Ecl0"
		c.Command = []string{"sh", "-c", `test -t 0 && stty -a | grep -o -e '-icanon' -e '-echo '; echo 'it'"'"'s up'; exec cat`}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		rw, err := c.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if pty {
			expectRead(t, rw, "-icanon\n-echo \n")
		}
		expectRead(t, rw, "it's up\n")
		if _, err := rw.Write([]byte("\r~.\r\n\x03")); err != nil { // neither ssh nor a terminal takes them for its own
			t.Fatal(err)
		}
		expectRead(t, rw, "\r~.\r\n\x03")
		if err := rw.(targets.Breaker).Break(t.Context()); err != nil {
			t.Error(err)
		}
		expectRead(t, rw, "\x05cl0")
		closeEndsRead(t, rw)
	}
	c := base
	c.Command = []string{"sh", "-c", "echo console is in use by joe >&2; exit 3"}
	if _, err := c.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "in use by joe") {
		t.Error(err)
	}
	c.KnownHosts = "/dev/null"
	if _, err := c.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "Host key verification failed") {
		t.Error(err)
	}
}
