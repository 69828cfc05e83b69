package results

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inOwnMounts runs the test again in a process with mounts of its own, which
// end with it; it says whether this is that process.
func inOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv("JOURNAL_MOUNTS") == t.Name() {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), "JOURNAL_MOUNTS="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in its own mounts: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
	return false
}

// tmpfs mounts one of a size ("1m").
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// child is this test binary at work as another process.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// childCommand has no context: a child ends with its input, and some are needed
// after the test's own context has ended.
func childCommand(prog, role string, env ...string) *exec.Cmd {
	cmd := exec.Command(prog)
	cmd.Env = append(append(os.Environ(), "JOURNAL_CHILD="+role), env...)
	return cmd
}

func startChild(t *testing.T, role string, env ...string) *child {
	t.Helper()
	cmd := childCommand(os.Args[0], role, env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{cmd, in, bufio.NewScanner(out)}
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the child said nothing more: %v", c.out.Err())
	}
	return c.out.Text()
}

func (c *child) tell(t *testing.T, text string) {
	t.Helper()
	if _, err := fmt.Fprintln(c.in, text); err != nil {
		t.Fatal(err)
	}
}

// end closes the child's input and waits for it.
func (c *child) end(t *testing.T) {
	t.Helper()
	if err := c.in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// faulty is a FUSE file system without flock whose writes fail on demand.
func faulty(t *testing.T) (dir string, server *child) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "mnt")
	for _, d := range []string{dir, filepath.Join(base, "store")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	server = startChild(t, "fuse", "FUSE_STORE="+filepath.Join(base, "store"), "FUSE_DIR="+dir)
	if s := server.line(t); s != "mounted" {
		t.Fatal(s)
	}
	t.Cleanup(func() { server.end(t) })
	return dir, server
}

func (c *child) fail(t *testing.T, e syscall.Errno) {
	t.Helper()
	c.tell(t, fmt.Sprint(int(e)))
	if s := c.line(t); s != "done" {
		t.Fatal(s)
	}
}
