package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// backlog is how many console bytes a stream keeps for a slow reader: a booting
// guest prints some 30 KB. Beyond it bytes are dropped, and the stream says so:
// a UART does not wait either.
const backlog = 4 << 20

// hub hands the console of whatever process runs to every open stream.
type hub struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
	guest   net.Conn // nil while no process runs
}

// Open gives a stream of the console from now on, across boots: bytes of each
// process from its first one. It ends (io.EOF) when a guest goes by itself, by a
// panic or a reboot, and when the machine is closed.
func (m *Machine) Open(context.Context) (io.ReadWriteCloser, error) {
	s := &stream{hub: &m.hub, more: make(chan struct{}, 1)}
	m.hub.mu.Lock()
	defer m.hub.mu.Unlock()
	if m.hub.streams == nil {
		m.hub.streams = make(map[*stream]struct{})
	}
	m.hub.streams[s] = struct{}{}
	return s, nil
}

func (h *hub) attach(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.guest = c
}

func (h *hub) detach(c net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.guest == c {
		h.guest = nil
	}
}

func (h *hub) deliver(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		s.add(b)
	}
}

// end ends every open stream after the bytes it still holds.
func (h *hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.streams {
		s.finish(io.EOF)
	}
	clear(h.streams)
}

// stream is one reader's view of the console.
type stream struct {
	hub  *hub
	more chan struct{} // something happened

	mu   sync.Mutex
	buf  []byte
	lost int
	err  error // why no more bytes come
}

func (s *stream) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := backlog - len(s.buf); len(b) > room {
		s.lost += len(b) - room
		b = b[:room]
	}
	s.buf = append(s.buf, b...)
	s.wake()
}

func (s *stream) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.wake()
}

func (s *stream) wake() {
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// take moves waiting bytes to b; ok is false when there is nothing to report yet.
func (s *stream) take(b []byte) (n int, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf) == 0 && s.lost > 0 {
		s.buf = fmt.Appendf(nil, "\n[%d console bytes lost: their reader was too slow]\n", s.lost)
		s.lost = 0
	}
	if errors.Is(s.err, net.ErrClosed) {
		return 0, true, s.err
	}
	if len(s.buf) > 0 {
		n = copy(b, s.buf)
		s.buf = s.buf[n:]
		return n, true, nil
	}
	return 0, s.err != nil, s.err
}

// Read waits for console bytes; Close ends the wait.
func (s *stream) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, ok, err := s.take(b)
		if ok {
			s.wake() // for another reader, or the next Read
			return n, err
		}
		<-s.more
	}
}

// Write types into the console of the running guest.
func (s *stream) Write(b []byte) (int, error) {
	s.hub.mu.Lock()
	guest := s.hub.guest
	s.hub.mu.Unlock()
	if guest == nil {
		return 0, errors.New("console: the machine is off")
	}
	if err := guest.SetWriteDeadline(time.Now().Add(qmpWait)); err != nil {
		return 0, fmt.Errorf("console: %w", err)
	}
	n, err := guest.Write(b)
	if err != nil {
		err = fmt.Errorf("console: %w", err)
	}
	return n, err
}

// Close ends the stream; the machine goes on.
func (s *stream) Close() error {
	s.hub.mu.Lock()
	delete(s.hub.streams, s)
	s.hub.mu.Unlock()
	s.finish(net.ErrClosed)
	return nil
}
