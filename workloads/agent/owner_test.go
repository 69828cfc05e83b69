package agent

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"kernsweep/workloads/wire"
)

// A task on the controller ends some time after the process that began it, and
// goes on while that one lives.
func TestATaskWithoutAnOwnerEnds(t *testing.T) {
	var text strings.Builder
	w, err := wire.NewWriter(&text, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := readProc(c.Process.Pid)
	o, err := parseRun([]string{"-owner", strconv.Itoa(p.pid) + "-" + p.start, "exec"})
	if err != nil || !ok {
		t.Fatal(err)
	}
	l, err := newLoop(w, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.lookAtOwner(1)
	if l.orphanEnd != never || l.ownerLook != 1+ownerNS {
		t.Errorf("the owner lives: %d, %d", l.orphanEnd, l.ownerLook)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	l.lookAtOwner(2)
	l.lookAtOwner(3)
	if l.orphanEnd != 2+orphanNS || l.endReason != "" {
		t.Errorf("the owner is gone: %d, %q", l.orphanEnd, l.endReason)
	}
	l.lookAtOwner(2 + orphanNS)
	status, reason := l.verdict(true)
	if status != "failed" || !strings.HasPrefix(reason, wire.Orphaned) || l.ownerLook != never {
		t.Errorf("%s: %s", status, reason)
	}
}

func TestEndOfASpool(t *testing.T) {
	end := "end 7 20\nstatus=ok\nreason=xy\n\n"
	for text, want := range map[string]string{
		wire.Magic + end:                        "ok",
		wire.Magic + "out 1 8\n\nend 1 2\n\n":   "",
		wire.Magic + "out 1 40\n" + end + "...": "",
		wire.Magic:                              "",
		wire.Magic + end[:len(end)-1]:           "",
	} {
		path := t.TempDir() + "/s"
		fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writeAll(fd, []byte(text)); err != nil {
			t.Fatal(err)
		}
		syscall.Close(fd)
		if got := endOf(path)["status"]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
