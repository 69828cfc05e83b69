package localproc

import (
	"os"
	"os/exec"
	"testing"
)

func TestProcesses(t *testing.T) {
	if Start(os.Getpid()) == "" || BootID() == "" || Space() == "" {
		t.Errorf("of this process: start %q, boot %q, namespace %q", Start(os.Getpid()), BootID(), Space())
	}
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	if Start(pid) == "" {
		t.Error("a process that lives has no start")
	}
	in.Close()
	_, _ = out.Read(make([]byte, 1)) // its end
	for state := ""; !Dead(state); { // the test's time limit ends this
		var ok bool
		if state, _, ok = Stat(pid); !ok {
			t.Fatal("a process that was not reaped cannot be seen")
		}
	}
	if Start(pid) != "" {
		t.Error("a process that waits to be reaped has a start")
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := Stat(pid); ok {
		t.Error("a process that was reaped is seen")
	}
}
