package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/workloads/wire"
)

// await polls until ok, for what sends no event.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited 20 s for %s", what)
		}
	}
}

// detach starts an agent whose stdout nobody reads any more, and returns it
// when its task runs.
func detach(t *testing.T, spool string, script string) *exec.Cmd {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "mark")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(agentPath(), "run", "-spool", spool, "exec", "--", "sh", "-c", "echo begun; : >"+mark+"; "+script)
	c.Stdout, c.Stderr = w, w
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	await(t, "the task's start", func() bool { _, err := os.Stat(mark); return err == nil })
	return c
}

func TestALostLinkAndAHangupLoseNothing(t *testing.T) {
	spool := filepath.Join(t.TempDir(), "s")
	c := detach(t, spool, "sleep 1; echo finished")
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	r := runAgent(t, "collect", "-spool", spool)
	r.ended(t, "ok", "")
	if string(r.spool.Stdout) != "begun\nfinished\n" {
		t.Errorf("stdout %q", r.spool.Stdout)
	}
	if _, err := os.Stat(spool); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the collected spool is still there: %v", err)
	}
	c.Wait() // whatever its exit status: collect may have ended it
}

func TestAKilledAgentLeavesATornSpool(t *testing.T) {
	spool := filepath.Join(t.TempDir(), "s")
	c := detach(t, spool, "exec sleep 2")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait() // it was killed
	r := runAgent(t, "collect", "-spool", spool)
	if r.code != 0 || !errors.Is(r.err, wire.ErrTorn) || r.spool.Begin["pid"] != strconv.Itoa(c.Process.Pid) {
		t.Errorf("exit %d, %v, begin %v, %s", r.code, r.err, r.spool.Begin, r.stderr)
	}
}

func TestCollectGivesUpAfterItsWait(t *testing.T) {
	spool := filepath.Join(t.TempDir(), "s")
	c := detach(t, spool, "exec sleep 60")
	r := runAgent(t, "collect", "-spool", spool, "-wait", "300ms")
	if r.code != 0 || !errors.Is(r.err, wire.ErrTorn) {
		t.Errorf("exit %d, %v", r.code, r.err)
	}
	start := r.spool.Begin["start"]
	if r := runAgent(t, "stop", "-pid", strconv.Itoa(c.Process.Pid), "-start", "1"+start); r.code != 0 {
		t.Errorf("stop of another start: exit %d", r.code)
	}
	if r := runAgent(t, "collect", "-spool", spool, "-wait", "200ms"); !errors.Is(r.err, wire.ErrTorn) {
		t.Errorf("ended by the pid of another process: %v", r.err)
	}
	if r := runAgent(t, "stop", "-spool", spool); r.code != 0 {
		t.Errorf("stop: exit %d: %s", r.code, r.stderr)
	}
	runAgent(t, "collect", "-spool", spool).ended(t, "failed", "killed by signal 15")
	c.Wait() // whatever its exit status
}

func freePort(t *testing.T) (net.Listener, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l, strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func TestAServerIsReadyWhenItOwnsItsPort(t *testing.T) {
	l, port := freePort(t)
	r := runAgent(t, "run", "-listen", port, "exec", "--", "iperf", "-s", "-p", port)
	r.ended(t, "failed", "port "+port+" is already taken by pid "+strconv.Itoa(os.Getpid())+" (")
	if len(r.spool.Tasks) != 0 {
		t.Error("the server was started all the same")
	}
	l.Close()
	for _, udp := range [][]string{{}, {"-u"}} {
		server := append([]string{"exec", "--", "iperf", "-s", "-p", port}, udp...)
		flags := []string{"run", "-listen", port, "-stop-after", "200ms"}
		if len(udp) > 0 {
			flags = append(flags, "-udp")
		}
		r = runAgent(t, append(flags, server...)...)
		r.ended(t, "stopped", "")
		if !strings.HasPrefix(r.stdout, "ready\n") {
			t.Errorf("%v: no ready line: %.60q", udp, r.stdout)
		}
	}
	runAgent(t, "run", "-listen", port, "exec", "--", "true").ended(t, "failed", "ended before port "+port+" was open")
	r = runAgent(t, "run", "-listen", port, "-deadline", "500ms", "exec", "--", "sleep", "20")
	r.ended(t, "timeout", "")
	if strings.HasPrefix(r.stdout, "ready") {
		t.Error("ready without a port")
	}
}

func TestAFullFileSystemStillGetsAnEnd(t *testing.T) {
	namespace := "-m"
	if os.Getuid() != 0 {
		namespace = "-Urm"
	}
	c := exec.Command("unshare", namespace, "sh", "-c",
		`mount -t tmpfs -o size=64k none /mnt && exec "$0" run -spool /mnt/s -sample 10ms exec -- sh -c 'head -c 500000 /dev/zero; sleep 0.3; exit 3'`, agentPath())
	r := finish(t, c)
	r.ended(t, "failed", "exited with status 3")
	if notes := strings.Join(r.spool.Notes, "\n"); !strings.Contains(notes, "full") {
		t.Errorf("notes %q", notes)
	}
}
