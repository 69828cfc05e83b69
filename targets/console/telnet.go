package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Telnet is a serial port behind a console server that speaks telnet (RFC 854,
// 855, 856, 857, 858), with the line's settings and breaks by RFC 2217 where the
// server has it. A server without it is used as it is.
type Telnet struct {
	Address string `hcl:"address" doc:"host:port of the telnet console port"`
	Line
}

// Check refuses an address without a port and settings no line has.
func (c *Telnet) Check() error {
	if err := checkAddress(c.Address); err != nil {
		return err
	}
	_, err := c.parse()
	return err
}

// answerTime bounds the wait for a server's answer to the line's settings.
const answerTime = 3 * time.Second

// Open connects, agrees on options and sets the line. Nothing is sent before the
// server has shown that it speaks telnet, unless the line is to be set: on a
// raw port our options would be typed at the machine. A server that sets
// something else than was asked for is an error; one that sets nothing is not.
func (c *Telnet) Open(ctx context.Context) (io.ReadWriteCloser, error) {
	f, err := c.parse()
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, c.Address)
	if err != nil {
		return nil, err
	}
	t := &telnetLine{conn: conn, set: lineSettings(c.Line, f)}
	if err := t.agree(ctx); err != nil {
		_ = conn.Close()
		if errors.Is(err, errHungUp) {
			err = refused(c.Address, t.pending, err)
		}
		return nil, err
	}
	return t, nil
}

var errHungUp = errors.New("the connection closed")

// telnetLine is an open telnet connection. One goroutine reads; others may
// write and send breaks meanwhile.
type telnetLine struct {
	conn net.Conn

	pending []byte // decoded and not read yet
	err     error  // how reading ended
	in      decoder
	raw     [4096]byte
	set     []setting // wanted of the line

	mu    sync.Mutex // what follows, and writes
	us    [256]optionState
	him   [256]optionState
	begun bool // our own wishes were sent
}

// agree listens for the server's first words and sets the line.
func (t *telnetLine) agree(ctx context.Context) error {
	if err := t.until(ctx, helloTime, func() bool { return false }); err != nil || len(t.set) == 0 {
		return err
	}
	t.begin()
	if err := t.until(ctx, answerTime, t.answered); err != nil {
		return err
	}
	for _, s := range t.set {
		if s.answered && s.got != s.want {
			return fmt.Errorf("the console server set %s %d, not the %d asked for (RFC 2217): use what it offers, or configure the port there", s.name, s.got, s.want)
		}
	}
	return nil
}

// until reads until done, or for d at most.
func (t *telnetLine) until(ctx context.Context, d time.Duration, done func() bool) error {
	undo := waitRead(ctx, t.conn, d)
	defer undo()
	for !done() && len(t.pending) < maxEarly {
		switch err := t.fill(); {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		default:
			return fmt.Errorf("%w: %w", errHungUp, err)
		}
	}
	return nil
}

// answered says that nothing more is to come about the line's settings.
func (t *telnetLine) answered() bool {
	if t.state(&t.us, optComPort) == optionOff {
		return true
	}
	for _, s := range t.set {
		if !s.answered {
			return false
		}
	}
	return true
}

// Notes says what the server did not do of what the configuration asks for.
func (t *telnetLine) Notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, s := range t.set {
		switch {
		case s.answered:
		case t.us[optComPort] != optionOn:
			return []string{"the console server has no RFC 2217: baud, format and flow are as they are set there"}
		default:
			out = append(out, fmt.Sprintf("the console server did not answer the setting of %s", s.name))
		}
	}
	return out
}

// fill reads once from the connection and takes it apart.
func (t *telnetLine) fill() error {
	n, err := t.conn.Read(t.raw[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	var replies []byte
	for _, c := range t.raw[:n] {
		data, event := t.in.add(c, t.him[optBinary] == optionOn)
		if data {
			t.pending = append(t.pending, c)
		}
		if event {
			replies = append(replies, t.react()...)
		}
	}
	if len(replies) > 0 {
		_, _ = t.send(replies) // a dead connection shows in the next read
	}
	return err
}

func (t *telnetLine) Read(p []byte) (int, error) {
	for len(t.pending) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		if err := t.fill(); err != nil {
			t.err = endOf(err)
		}
	}
	n := copy(p, t.pending)
	t.pending = t.pending[n:]
	return n, nil
}

// Write doubles IAC and, unless the server takes 8-bit data, follows a CR that
// stands for itself with NUL (RFC 854).
func (t *telnetLine) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]byte, 0, len(p)+16)
	for i, c := range p {
		out = append(out, c)
		switch {
		case c == iac:
			out = append(out, iac)
		case c == '\r' && t.us[optBinary] != optionOn && (i+1 == len(p) || p[i+1] != '\n'):
			out = append(out, 0)
		}
	}
	if n, err := t.send(out); err != nil {
		return min(n, len(p)), stuck(err)
	}
	return len(p), nil
}

// send writes as it is. The caller holds mu.
func (t *telnetLine) send(b []byte) (int, error) {
	_ = t.conn.SetWriteDeadline(time.Now().Add(writeTime)) // of an open socket: cannot fail
	return t.conn.Write(b)
}

// Break sends a break of the line by RFC 2217, or else telnet's own.
func (t *telnetLine) Break(ctx context.Context) error {
	if t.state(&t.us, optComPort) != optionOn {
		return t.command([]byte{iac, brk})
	}
	if err := t.command(comPort(setControl, controlBreakOn)); err != nil {
		return err
	}
	err := pause(ctx, breakTime)
	return errors.Join(err, t.command(comPort(setControl, controlBreakOff))) // never left on
}

func (t *telnetLine) command(b []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.send(b)
	return stuck(err)
}

// Close ends a waiting read.
func (t *telnetLine) Close() error { return t.conn.Close() }
