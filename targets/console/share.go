package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kernsweep/targets/private"
)

const (
	shareFolder = ".consoles"
	backlogSize = 16 << 10        // bytes of the past that a viewer gets
	maxBehind   = 1 << 20         // bytes; a viewer further behind is dropped
	viewerWrite = 5 * time.Second // for one write to a viewer
	lastWords   = time.Second     // for what viewers have not read when the sharing ends
	helloLimit  = 1000            // bytes of the first line
)

// Share lets others watch a console while it is recorded: a Unix socket in the
// folder RUNS/.consoles, which only this user may enter. A viewer gets one line
// that says who records, the last 16 KiB, and then all that comes. Write never
// waits for a viewer: one that falls 1 MiB behind is dropped.
type Share struct {
	dir    *os.File // keeps its /proc name alive
	listen *net.UnixListener
	hello  string
	wg     sync.WaitGroup

	mu      sync.Mutex
	recent  []byte
	viewers map[*viewer]bool
	closed  bool
}

// viewer is somebody who watches.
type viewer struct {
	conn net.Conn
	buf  []byte        // not sent yet; guarded by Share.mu
	news chan struct{} // has one element when buf changed or the sharing ended
}

// Offer begins to share the console of a target below runs, the folder of the
// run directories. who says in one line who records it. A socket that a dead
// process left is replaced; one that lives is an error.
func Offer(runs, target, who string) (*Share, error) {
	folder := filepath.Join(runs, shareFolder)
	if err := os.MkdirAll(runs, 0o777); err != nil {
		return nil, fmt.Errorf("console of %s is not shared: %w", target, err)
	}
	if c, err := dialShare(runs, target); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("console of %s is not shared: another process shares one of that name in %s", target, folder)
	}
	dir, err := private.Folder(folder)
	if err != nil {
		return nil, fmt.Errorf("console of %s is not shared: %w", target, err)
	}
	path := private.Socket(dir, target+".sock")
	_ = os.Remove(path) // nobody listens on it; none is fine
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		_ = dir.Close() // nothing was written
		return nil, fmt.Errorf("console of %s is not shared: %w", target, err)
	}
	who, _, _ = strings.Cut(who, "\n")
	s := &Share{dir: dir, listen: l, hello: who[:min(len(who), helloLimit-1)] + "\n", viewers: map[*viewer]bool{}}
	s.wg.Go(s.accept)
	return s, nil
}

func dialShare(runs, target string) (net.Conn, error) {
	dir, err := os.Open(filepath.Join(runs, shareFolder))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	return private.Dial(ctx, private.Socket(dir, target+".sock"))
}

func (s *Share) accept() {
	for {
		c, err := s.listen.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			_ = pause(context.Background(), 50*time.Millisecond) // no descriptors left: that passes
			continue
		}
		s.mu.Lock()
		if s.closed {
			_ = c.Close()
		} else {
			v := &viewer{conn: c, buf: append([]byte(s.hello), s.recent...), news: make(chan struct{}, 1)}
			v.news <- struct{}{}
			s.viewers[v] = true
			s.wg.Go(func() { s.serve(v) })
		}
		s.mu.Unlock()
	}
}

// serve sends to one viewer until it goes, is dropped, or the sharing ends.
func (s *Share) serve(v *viewer) {
	defer v.conn.Close()
	for range v.news {
		s.mu.Lock()
		b, listed, closed := v.buf, s.viewers[v], s.closed
		v.buf = nil
		s.mu.Unlock()
		if !listed {
			return
		}
		wait := viewerWrite
		if closed {
			wait = lastWords
		}
		_ = v.conn.SetWriteDeadline(time.Now().Add(wait)) // of an open socket: cannot fail
		if _, err := v.conn.Write(b); err != nil || closed {
			s.mu.Lock()
			delete(s.viewers, v)
			s.mu.Unlock()
			return
		}
	}
}

// Write gives bytes to all who watch. It never waits and never fails.
func (s *Share) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recent = append(s.recent, p...)
	if over := len(s.recent) - backlogSize; over > 0 {
		s.recent = append(s.recent[:0], s.recent[over:]...)
	}
	for v := range s.viewers {
		if len(v.buf)+len(p) > maxBehind {
			delete(s.viewers, v)
			_ = v.conn.Close() // ends a write that waits
		} else {
			v.buf = append(v.buf, p...)
		}
		v.wake()
	}
	return len(p), nil
}

func (v *viewer) wake() {
	select {
	case v.news <- struct{}{}:
	default:
	}
}

// Close sends viewers what is left, at most for a second, and hangs up. It may
// be called again.
func (s *Share) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for v := range s.viewers {
		_ = v.conn.SetWriteDeadline(time.Now().Add(lastWords)) // also for a write that waits
		v.wake()
	}
	s.mu.Unlock()
	err := s.listen.Close() // and removes the socket
	s.wg.Wait()
	return errors.Join(err, s.dir.Close())
}

// Watch attaches to a console that is shared. It returns who records it, and its
// bytes; they end, with io.EOF, when the sharing ends or the reader is too slow.
// The error wraps fs.ErrNotExist or ECONNREFUSED when nobody shares it.
func Watch(runs, target string) (who string, console io.ReadCloser, err error) {
	c, err := dialShare(runs, target)
	if err != nil {
		return "", nil, err
	}
	_ = c.SetReadDeadline(time.Now().Add(viewerWrite)) // of an open socket: cannot fail
	var line []byte
	for b := make([]byte, 1); len(line) < helloLimit; line = append(line, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			_ = c.Close() // nothing was sent
			return "", nil, fmt.Errorf("the process that records the console of %s does not answer: %w", target, err)
		}
		if b[0] == '\n' {
			break
		}
	}
	_ = c.SetReadDeadline(time.Time{})
	return string(line), c, nil
}
