package qemu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"kernsweep/targets/localproc"
	"kernsweep/targets/private"
)

// Deadlines for a process that was left: to answer and quit, and to die.
const (
	quitWait   = 5 * time.Second
	gonePoll   = 20 * time.Millisecond // where no process of ours ends, the OS gives no event
	mostRecord = 64 << 10              // bytes
)

func (g guests) endLeft(ctx context.Context, note func(string)) error {
	entries, err := os.ReadDir(g.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = g.open()
	}
	if err != nil {
		return fmt.Errorf("QEMU processes of killed controllers cannot be looked for: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".json" || ctx.Err() != nil {
			continue
		}
		if err := g.look(ctx, strings.TrimSuffix(e.Name(), ".json"), note); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// look looks at one record, and ends its process when nobody else will.
func (g guests) look(ctx context.Context, id string, note func(string)) error {
	l := &left{g: g, id: id}
	r, err := readLeft(l.record())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // its controller removed it meanwhile
	case err != nil:
		note(fmt.Sprintf("%s is no record of a QEMU process, and is removed: %v", l.record(), err))
		l.remove()
		return nil
	case r.PIDs != localproc.Space():
		return nil // of another container, where these numbers mean other processes
	case r.Boot != localproc.BootID():
		l.remove() // this machine's reboot ended it
		return nil
	case r.Controller.Start != "" && localproc.Start(r.Controller.PID) == r.Controller.Start:
		return nil // its controller lives
	case r.PID == 0:
		if r.PID, err = r.listens(ctx); err != nil {
			l.remove() // it did not start
			return nil
		}
		r.Start = localproc.Start(r.PID)
	}
	if !r.is() {
		l.remove() // it is gone; another process may have its number
		return nil
	}
	how, err := r.end(ctx)
	if err != nil {
		return fmt.Errorf("%s of target %s (pid %d), left by a killed controller (pid %d), does not end: %w; end it by hand",
			r.Program, r.Target, r.PID, r.Controller.PID, err)
	}
	l.remove()
	note(fmt.Sprintf("%s of target %s (pid %d), left by a killed controller (pid %d), was ended by %s", r.Program, r.Target, r.PID, r.Controller.PID, how))
	return nil
}

// readLeft reads a record, and takes only a file of this user's.
func readLeft(path string) (leftRecord, error) {
	var r leftRecord
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return r, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return r, err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !st.Mode().IsRegular() || !ok || int(sys.Uid) != os.Getuid() {
		return r, errors.New("it is no file of this user")
	}
	b, err := io.ReadAll(io.LimitReader(f, mostRecord))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, err
	}
	if r.QMP == "" || r.PID != 0 && (r.PID < 2 || r.Start == "") {
		return r, errors.New("it names no process")
	}
	return r, nil
}

// is says that the recorded process lives: the number, when it started, and its
// own socket on its command line.
func (r leftRecord) is() bool {
	if localproc.Start(r.PID) != r.Start {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", r.PID))
	return err == nil && bytes.Contains(line, []byte(r.path()))
}

// end ends the process: gently, or by a signal to the very process that was
// looked at, whatever becomes of its number.
func (r leftRecord) end(ctx context.Context) (how string, err error) {
	p, err := os.FindProcess(r.PID) // by pidfd, where the kernel has it
	if err != nil {
		return "", err
	}
	defer p.Release()
	if !r.is() {
		return "itself", nil // it went while we looked
	}
	quitErr := r.quit(ctx)
	if quitErr == nil && r.gone(ctx, quitWait) {
		return "quit over QMP", nil
	}
	if quitErr == nil {
		quitErr = fmt.Errorf("it was asked to quit and lives on %s later", quitWait)
	}
	if !r.is() {
		return "itself", nil
	}
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return "", err
	}
	if !r.gone(ctx, killWait) {
		return "", fmt.Errorf("it lives on %s after SIGKILL (QMP: %w)", killWait, quitErr)
	}
	return fmt.Sprintf("SIGKILL (QMP: %v)", quitErr), nil
}

// quit asks over QMP, and only the recorded process.
func (r leftRecord) quit(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, quitWait)
	defer stop()
	c, err := private.Dial(ctx, r.QMP)
	if err != nil {
		return err
	}
	defer c.Close()
	pid, err := peerOf(c)
	if err != nil {
		return err
	}
	if pid != r.PID {
		return fmt.Errorf("process %d listens at %s", pid, r.QMP)
	}
	q := newQMP(c)
	if err := q.hello(ctx); err != nil {
		return err
	}
	if err := q.execute(ctx, "quit", nil, nil); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// listens is the process that listens at the socket.
func (r leftRecord) listens(ctx context.Context) (int, error) {
	ctx, stop := context.WithTimeout(ctx, quitWait)
	defer stop()
	c, err := private.Dial(ctx, r.QMP)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return peerOf(c)
}

// peerOf is the process at the other end of a socket.
func peerOf(c net.Conn) (int, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a socket of this machine")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var pid int
	var bad error
	if err := raw.Control(func(fd uintptr) { pid, bad = peerPID(int(fd)) }); err != nil {
		return 0, err
	}
	return pid, bad
}

// gone waits until the process is.
func (r leftRecord) gone(ctx context.Context, limit time.Duration) bool {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	tick := time.NewTicker(gonePoll)
	defer tick.Stop()
	for localproc.Start(r.PID) == r.Start {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return localproc.Start(r.PID) != r.Start
		}
	}
	return true
}
