package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminal starts the program as the leader of a terminal's session, as after a
// login, and returns the other end.
func (n *night) onTerminal(t *testing.T, p place, args ...string) (*process, *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	c := &process{began: time.Now(), done: make(chan struct{})}
	c.cmd = exec.Command(n.program, append([]string{"-f", n.file, "--runs", p.runs}, args...)...)
	c.cmd.Env = append(os.Environ(), "KERNSWEEP_LEASES="+p.leases, "TERM=xterm")
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // the state says how it ended
		close(c.done)
	}()
	return c, master
}

// The terminal of a run is closed: no output works any more, and the run leaves
// everything in order.
func TestClosedTerminal(t *testing.T) {
	n, p := newNight(t, build(t), 1, 1, 1), newPlace(t)
	n.longer(t)
	c, master := n.onTerminal(t, p, "run", "night")
	begins := func() bool { return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000") }
	c.until(t, "the workload does not begin", begins)
	closed := time.Now()
	if err := master.Close(); err != nil {
		t.Fatal(err)
	}
	if status := c.wait(t); status != exitInterrupted || time.Since(closed) > orderlyLimit {
		t.Errorf("status %d after %s", status, time.Since(closed))
	}
	s, err := p.run(t).State()
	if err != nil {
		t.Fatal(err)
	}
	if m := s.Model; !m.Sessions[0].Interrupted || !strings.Contains(m.Sessions[0].Note, "SIGHUP") || m.Lanes[0].Ended.IsZero() {
		t.Errorf("the journal says: %+v", m.Sessions)
	}
	if _, err := os.Stat(filepath.Join(p.run(t).Dir(), "report.txt")); err != nil {
		t.Error(err)
	}
	n.nothingHeld(t, p)
}

// Ctrl-C typed on a terminal that shows the live view: one line, which stays.
func TestCtrlCOnATerminal(t *testing.T) {
	n, p := newNight(t, build(t), 1, 1, 1), newPlace(t)
	n.longer(t)
	c, master := n.onTerminal(t, p, "run", "night")
	defer master.Close()
	var shown strings.Builder
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, master) // EIO once the program has ended
	}()
	c.until(t, "the workload does not begin", func() bool {
		return strings.Contains(strings.Join(n.lab.Machines[0].Processes(), " "), "1000")
	})
	if _, err := master.Write([]byte{3}); err != nil {
		t.Fatal(err)
	}
	status := c.wait(t)
	<-read
	if n := strings.Count(shown.String(), "Ctrl-C again quits"); status != exitInterrupted || n != 1 {
		t.Errorf("status %d, said %d times:\n%s", status, n, shown.String())
	}
	n.nothingHeld(t, p)
}
