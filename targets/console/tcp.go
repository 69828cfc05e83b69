package console

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// TCP is a serial port behind a console server, in raw mode (ser2net, a
// terminal server's raw port): the bytes of the line and nothing else.
type TCP struct {
	Address string `hcl:"address" doc:"host:port of the raw console port"`
}

// Check refuses an address without a port.
func (c *TCP) Check() error { return checkAddress(c.Address) }

// Open connects and listens a moment: a server that hangs up at once is an
// error with its words in it.
func (c *TCP) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	conn, err := dial(ctx, c.Address)
	if err != nil {
		return nil, err
	}
	l := &tcpLine{Conn: conn}
	undo := waitRead(ctx, conn, helloTime)
	defer undo()
	buf := make([]byte, 4096)
	for len(l.early) < maxEarly {
		n, err := conn.Read(buf)
		l.early = append(l.early, buf[:n]...)
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			_ = conn.Close()
			return nil, context.Cause(ctx)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			_ = conn.Close()
			return nil, refused(c.Address, l.early, err)
		}
		break
	}
	return l, nil
}

// maxEarly bounds, in bytes, what is kept of a console that talks while it is
// opened; the rest waits in the socket.
const maxEarly = 64 << 10

// tcpLine is a connection with the bytes that came while it was opened.
type tcpLine struct {
	net.Conn
	early []byte
}

func (l *tcpLine) Read(p []byte) (int, error) {
	if len(l.early) > 0 {
		n := copy(p, l.early)
		l.early = l.early[n:]
		return n, nil
	}
	n, err := l.Conn.Read(p)
	return n, endOf(err)
}

func (l *tcpLine) Write(p []byte) (int, error) {
	_ = l.SetWriteDeadline(time.Now().Add(writeTime)) // of an open socket: cannot fail
	n, err := l.Conn.Write(p)
	return n, stuck(err)
}
