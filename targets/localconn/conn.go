// Package localconn is the controller itself as a machine: the second
// implementation of targets.Conn, for peers.
package localconn

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"kernsweep/targets"
)

type conn struct{}

// New returns the controller as a Conn.
func New() targets.Conn { return conn{} }

func (conn) Run(ctx context.Context, c targets.Cmd) (targets.Exit, error) {
	if len(c.Argv) == 0 {
		return targets.Exit{}, errors.New("no command given")
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return targets.Exit{}, context.Cause(ctx)
	}
	var ee *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return targets.Exit{}, nil
	case errors.As(err, &ee):
		if ws := ee.Sys().(syscall.WaitStatus); ws.Signaled() {
			return targets.Exit{Signal: signalName(ws.Signal())}, nil
		}
		return targets.Exit{Code: ee.ExitCode()}, nil
	case errors.Is(err, exec.ErrNotFound):
		return targets.Exit{Code: 127}, nil
	}
	return targets.Exit{Code: 126}, nil
}
func signalName(s syscall.Signal) string { return s.String() }
func (conn) Put(_ context.Context, path string, mode fs.FileMode, r io.Reader) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".kernsweep-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
func (conn) Get(_ context.Context, path string, w io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
func (conn) Close() error { return nil }
