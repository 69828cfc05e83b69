package deploy

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"kernsweep/targets"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("TEST_CONTROLLER"); file != "" {
		os.Exit(controller(file))
	}
	// These tests wait for processes more than they compute.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// fakeConn runs commands here. Its rewrites turn it into other machines.
type fakeConn struct {
	mu      sync.Mutex
	ran     []string
	put     []string
	rewrite func(argv []string) []string // nil: as they are
	answer  func(argv []string) (targets.Exit, string, bool)
	cut     func(argv []string) bool // lose the link in this command, for good
	hold    func(argv []string) bool // run it until the context ends, and leave it running
	lost    bool
}

func (c *fakeConn) Run(ctx context.Context, cmd targets.Cmd) (targets.Exit, error) {
	c.mu.Lock()
	lost := c.lost
	c.ran = append(c.ran, strings.Join(cmd.Argv, " "))
	c.mu.Unlock()
	if lost {
		return targets.Exit{}, &targets.LinkError{Phase: "exec", Err: errors.New("connection lost")}
	}
	if c.answer != nil {
		if exit, out, ok := c.answer(cmd.Argv); ok {
			_, err := io.WriteString(cmd.Stdout, out)
			return exit, err
		}
	}
	argv := cmd.Argv
	if c.rewrite != nil {
		argv = c.rewrite(argv)
	}
	if c.cut != nil && c.cut(cmd.Argv) {
		return c.runAndLose(argv)
	}
	if c.hold != nil && c.hold(cmd.Argv) {
		_, err := c.runAndLose(argv)
		<-ctx.Done()
		c.mu.Lock()
		c.lost = false
		c.mu.Unlock()
		if _, ok := err.(*targets.LinkError); ok {
			err = ctx.Err()
		}
		return targets.Exit{}, err
	}
	p := exec.CommandContext(ctx, argv[0], argv[1:]...)
	p.Stdin, p.Stdout, p.Stderr = cmd.Stdin, cmd.Stdout, cmd.Stderr
	err := p.Run()
	var ee *exec.ExitError
	switch {
	case err == nil:
		return targets.Exit{}, nil
	case ctx.Err() != nil:
		return targets.Exit{}, ctx.Err()
	case errors.As(err, &ee):
		ws := ee.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			name := map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGILL: "ILL"}[ws.Signal()]
			return targets.Exit{Signal: name}, nil
		}
		return targets.Exit{Code: ws.ExitStatus()}, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return targets.Exit{Code: 127}, nil
	}
	return targets.Exit{Code: 126}, nil
}

// runAndLose starts argv and loses the link at once: the command goes on with
// a closed pipe as its stdout.
func (c *fakeConn) runAndLose(argv []string) (targets.Exit, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return targets.Exit{}, err
	}
	p := exec.Command(argv[0], argv[1:]...)
	p.Stdout, p.Stderr = w, w
	err = p.Start()
	w.Close()
	r.Close()
	if err != nil {
		return targets.Exit{}, err
	}
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	go p.Wait() // ends with the command, which the test collects
	return targets.Exit{}, &targets.LinkError{Phase: "exec", Err: errors.New("connection lost")}
}

func (c *fakeConn) Put(_ context.Context, path string, mode fs.FileMode, r io.Reader) error {
	c.mu.Lock()
	c.put = append(c.put, path)
	c.mu.Unlock()
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	os.Remove(path)
	return os.WriteFile(path, b, mode)
}

func (c *fakeConn) Get(_ context.Context, path string, w io.Writer) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(b))
	return err
}

func (c *fakeConn) Close() error { return nil }
