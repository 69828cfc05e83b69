package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// writeTime bounds one write: a console that takes nothing that long is stuck,
	// by flow control or a server that hangs.
	writeTime = 10 * time.Second
	// helloTime is how long a console server is listened to before its console
	// counts as open: one whose port is taken says so and hangs up.
	helloTime = 250 * time.Millisecond
	// breakTime is how long a break lasts where we end it (tcsendbreak(3): 0.25 to
	// 0.5 s).
	breakTime = 300 * time.Millisecond
	// deadTime is how long a peer may leave our probes and bytes without an answer.
	deadTime = 30 * time.Second
)

// checkAddress refuses what is not host:port.
func checkAddress(s string) error {
	host, port, err := net.SplitHostPort(s)
	switch {
	case err != nil || host == "" || port == "":
		return fmt.Errorf("address = %q: want host:port", s)
	case !isPort(port):
		return fmt.Errorf("address = %q: the port is a number from 1 to 65535", s)
	}
	return nil
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// dial connects to a console server. One that lost its supply is noticed after
// deadTime, whether or not something was sent (tcp(7): keepalive,
// deadOption).
func dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: deadTime / 2, Interval: deadTime / 6, Count: 3},
		Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { // without it only the keepalives remain
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, deadOption, int(deadTime/deadUnit))
			})
		},
	}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("console server: %w", err)
	}
	return conn, nil
}

// waitRead sets the deadline for reads of c, which ctx moves to now. undo lifts
// both.
func waitRead(ctx context.Context, c interface{ SetReadDeadline(time.Time) error }, d time.Duration) (undo func()) {
	_ = c.SetReadDeadline(time.Now().Add(d)) // of an open descriptor: cannot fail
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.SetReadDeadline(time.Unix(1, 0))
		close(done)
	})
	return func() {
		if !stop() {
			<-done
		}
		_ = c.SetReadDeadline(time.Time{})
	}
}

// refused is the error for a server that hung up at once.
func refused(address string, said []byte, err error) error {
	if text := strings.TrimSpace(strings.ToValidUTF8(string(said), "?")); text != "" {
		return fmt.Errorf("console server %s hung up at once and said %.300q: is somebody else on this console?", address, text)
	}
	return fmt.Errorf("console server %s hung up at once (%w): is somebody else on this console, or its line switched off there?", address, err)
}

// endOf turns the end of a connection into a sentence; it stays io.EOF.
func endOf(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the console server closed the connection: %w", io.EOF)
	case errors.Is(err, syscall.ETIMEDOUT):
		return fmt.Errorf("the console server no longer answers: %w", err)
	}
	return err
}

// stuck turns a write that found no taker into a sentence.
func stuck(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the console took no byte for %s (flow control, or its server hangs): %w", writeTime, err)
	}
	return err
}

// caret spells control characters: ^E is 0x05, ^? is 0x7f, ^^ is a caret.
func caret(s string) ([]byte, error) {
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '^' {
			out = append(out, s[i])
			continue
		}
		i++
		switch {
		case i == len(s):
			return nil, fmt.Errorf("break = %q ends in a caret: write ^^ for one", s)
		case s[i] == '^':
			out = append(out, '^')
		case s[i] == '?':
			out = append(out, 0x7f)
		case s[i] >= '@' && s[i] <= '_' || s[i] >= 'a' && s[i] <= 'z':
			out = append(out, s[i]&0x1f)
		default:
			return nil, fmt.Errorf("break = %q: ^%c is no control character", s, s[i])
		}
	}
	return out, nil
}

// pause waits, or returns ctx's cause.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
