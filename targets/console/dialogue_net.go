package console

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Remote is a loader's own command line on a TCP port (RedBoot listens on 9000):
// bytes, with a few commands of RFC 854 in between. One goroutine uses it.
type Remote struct {
	conn net.Conn
	news chan remoteRead
	skip telnetSkip
}

type remoteRead struct {
	b   []byte
	err error
}

// NewRemote begins to read conn. Close ends it.
func NewRemote(conn net.Conn) *Remote {
	t := &Remote{conn: conn, news: make(chan remoteRead)}
	go t.pump()
	return t
}

// pump hands over what comes, until the connection ends.
func (t *Remote) pump() {
	defer close(t.news)
	for {
		b := make([]byte, 2048)
		n, err := t.conn.Read(b)
		if text := t.skip.text(b[:n]); len(text) > 0 || err != nil {
			t.news <- remoteRead{text, err}
		}
		if err != nil {
			return
		}
	}
}

// Next is as Channel asks.
func (t *Remote) Next(ctx context.Context) ([]byte, error) {
	select {
	case r, ok := <-t.news:
		if !ok {
			return nil, fmt.Errorf("the connection to %s: %w", t.conn.RemoteAddr(), net.ErrClosed)
		}
		if len(r.b) > 0 {
			return r.b, nil // a closed channel tells the rest
		}
		return nil, fmt.Errorf("the connection to %s: %w", t.conn.RemoteAddr(), r.err)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Write types bytes; a loader that takes none for 10 s is an error.
func (t *Remote) Write(b []byte) (int, error) {
	if err := t.conn.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return 0, err
	}
	return t.conn.Write(b)
}

// Close ends the connection and its reader.
func (t *Remote) Close() error {
	err := t.conn.Close()
	for range t.news { // what nobody wants any more
	}
	return err
}

// telnetSkip takes the commands out of a stream: IAC and one byte, or two for
// WILL, WONT, DO and DONT, or a subnegotiation.
type telnetSkip struct {
	left byte // 0 text, 1 after IAC, 2 one more byte, 3 in a subnegotiation, 4 after IAC there
}

func (s *telnetSkip) text(p []byte) []byte {
	out := p[:0]
	for _, c := range p {
		switch {
		case s.left == 0 && c == 255, s.left == 3 && c == 255:
			s.left++
		case s.left == 0:
			out = append(out, c)
		case s.left == 1 && c == 250:
			s.left = 3
		case s.left == 1 && c >= 251 && c <= 254:
			s.left = 2
		case s.left == 4 && c != 240:
			s.left = 3
		case s.left == 3:
		default:
			s.left = 0
		}
	}
	return out
}
