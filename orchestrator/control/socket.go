package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/private"
)

const (
	folder     = ".control"
	askTime    = 10 * time.Second // for one request and its answer
	maxRequest = 64 << 10         // bytes of one line
	maxAtOnce  = 32               // requests; more wait
)

// Server takes requests for a run until it is closed.
type Server struct {
	dir    *os.File // keeps its /proc name alive
	listen *net.UnixListener
	to     Steered
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// Serve listens for requests about a run that this process executes. A socket
// that a dead process left is replaced. ctx ends requests that are being
// answered; Close ends all.
func Serve(ctx context.Context, run *results.Run, to Steered) (*Server, error) {
	fail := func(err error) (*Server, error) {
		return nil, fmt.Errorf("run %s cannot be steered by other processes: %w", run.Name(), err)
	}
	if run.Meta.ID == "" {
		return fail(errors.New("it is of a version that gave runs no identity"))
	}
	at, err := place(run)
	if err != nil {
		return fail(err)
	}
	dir, err := private.Folder(at)
	if err != nil {
		return fail(err)
	}
	path := private.Socket(dir, socket(run))
	_ = os.Remove(path) // the run is ours: nobody listens on it; none is fine
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		_ = dir.Close() // nothing was written
		return fail(err)
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Server{dir: dir, listen: l, to: to, stop: stop}
	s.wg.Go(func() { s.accept(ctx) })
	return s, nil
}

// place is the folder of the sockets: beside the run, whatever path it was named by.
func place(run *results.Run) (string, error) {
	dir, err := filepath.EvalSymlinks(run.Dir())
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	return filepath.Join(filepath.Dir(dir), folder), err
}

func (s *Server) accept(ctx context.Context) {
	turn := make(chan struct{}, maxAtOnce)
	for {
		c, err := s.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors left: that passes
			t := time.NewTimer(100 * time.Millisecond)
			select {
			case <-t.C:
			case <-ctx.Done():
			}
			t.Stop()
			continue
		}
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			_ = c.Close() // nothing was asked yet
			continue
		}
		s.wg.Go(func() {
			defer func() { _ = c.Close(); <-turn }() // who asked may have gone
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
			s.answer(ctx, c)
		})
	}
}

func (s *Server) answer(ctx context.Context, c net.Conn) {
	var r Request
	var a answer
	in := bufio.NewScanner(c)
	in.Buffer(make([]byte, 0, 4096), maxRequest)
	var err error
	switch {
	case in.Scan():
		err = json.Unmarshal(in.Bytes(), &r)
	case errors.Is(in.Err(), bufio.ErrTooLong):
		err = fmt.Errorf("a request has at most %d bytes", maxRequest)
	default:
		return // nothing was asked
	}
	if err == nil {
		err = r.Check()
	}
	if err == nil {
		a.Said, err = s.to.Steer(ctx, r)
	}
	if err != nil {
		a.Error = err.Error()
	}
	b, err := json.Marshal(a)
	if err == nil {
		_, _ = c.Write(append(b, '\n')) // who asked has gone: what was asked stands
	}
}

// Close takes no more requests, and waits for those being answered.
func (s *Server) Close() error {
	err := s.listen.Close() // and removes the socket
	s.stop()
	s.wg.Wait()
	return errors.Join(err, s.dir.Close())
}

// Ask asks the controller that executes a run, and gives its answer: one
// sentence. The error is the controller's refusal, a *RefusedError, or says that nobody executes
// the run on this machine.
func Ask(ctx context.Context, run *results.Run, r Request) (said string, err error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c, err := dial(ctx, run)
	if err != nil {
		return "", unanswered(run, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })()
	line, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return "", unanswered(run, err)
	}
	var a answer
	if err := json.NewDecoder(io.LimitReader(c, maxRequest)).Decode(&a); err != nil {
		if r.Action == StopNow && ctx.Err() == nil {
			return "the controller of run " + run.Name() + " has quit", nil
		}
		return "", fmt.Errorf("run %s: its controller took the request (%s) and did not answer: %w", run.Name(), r.Action, err)
	}
	if a.Error != "" {
		return "", &RefusedError{a.Error}
	}
	return a.Said, nil
}

func dial(ctx context.Context, run *results.Run) (net.Conn, error) {
	at, err := place(run)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(at)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return private.Dial(ctx, private.Socket(dir, socket(run)))
}

// unanswered says why a controller cannot be reached.
func unanswered(run *results.Run, err error) error {
	switch h, held := run.HeldBy(); {
	case !held:
		return fmt.Errorf("run %s is not being executed: there is nothing to steer", run.Name())
	case !h.Here():
		return fmt.Errorf("run %s is executed by %s: steer it there", run.Name(), h)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("run %s is executed by %s: only its user can steer it", run.Name(), h)
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("run %s is executed by %s, which takes no requests (it begins, ends, or is of an older version): ask again in a moment, or kernsweep stop", run.Name(), h)
	default:
		return fmt.Errorf("run %s is executed by %s, which does not answer: %w", run.Name(), h, err)
	}
}
