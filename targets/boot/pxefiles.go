package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/google/renameio/v2"
)

// pxeFiles are the files of one machine in a TFTP server's folder. While they
// are armed they start a kernel; disarmed, they send the machine to its own disk.
type pxeFiles struct {
	dir   string
	local map[string]string // name -> content when disarmed

	mu    sync.Mutex
	guard *pxeGuard // nil: the server ends with us
}

// arm writes what starts a kernel, name -> content. Files of somebody else are
// never overwritten.
func (f *pxeFiles) arm(kernel map[string]string, guarded bool) error {
	for name := range kernel {
		path := filepath.Join(f.dir, name)
		b, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !bytes.Contains(b, []byte(pxeMark)):
			return fmt.Errorf("%s decides already what this machine starts, and is not of kernsweep: move it away", path)
		}
	}
	if guarded {
		g, err := startPXEGuard(f.dir, f.local)
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.guard = g
		f.mu.Unlock()
	}
	return f.write(kernel)
}

// disarm may be called again, also from another goroutine.
func (f *pxeFiles) disarm() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.write(f.local)
	if f.guard != nil {
		err = errors.Join(err, f.guard.end())
		f.guard = nil
	}
	return err
}

// write puts each file in place in one step, readable by a server of any user.
func (f *pxeFiles) write(files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(f.dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = renameio.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			return fmt.Errorf("this machine's boot file %s: %w", name, err)
		}
	}
	return nil
}

// pxeGuard is a process that disarms files when kernsweep ends in whatever way: a
// machine must not start a kernel under test for ever because its controller
// crashed. It waits for the end of a pipe that only we hold.
type pxeGuard struct {
	pipe io.Closer
	cmd  *exec.Cmd
}

const pxeGuardScript = `trap '' HUP INT TERM
cat
while [ $# -gt 1 ]; do
	printf %s "$2" >"$1.new" && mv -f "$1.new" "$1"
	shift 2
done`

func startPXEGuard(dir string, local map[string]string) (*pxeGuard, error) {
	argv := []string{"-c", pxeGuardScript, "kernsweep-pxe-guard"}
	for name, text := range local {
		argv = append(argv, filepath.Join(dir, name), text)
	}
	c := exec.Command("/bin/sh", argv...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for us, not for it
	pipe, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &pxeGuard{pipe, c}, nil
}

// end lets it do its work, which takes no time, and waits for it.
func (g *pxeGuard) end() error {
	_ = g.pipe.Close() // it may be gone already
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("the process that guards the boot files: %w", err)
	}
	return nil
}
