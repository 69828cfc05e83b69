package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// maxReply bounds one QMP message.
const maxReply = 1 << 20

// qmp speaks QEMU's machine protocol (qemu/docs/interop/qmp-spec.txt), one
// command at a time. It is not safe for concurrent use.
type qmp struct {
	conn net.Conn
	in   *bufio.Reader
	next int
}

// message is any line QEMU sends: greeting, reply or event.
type message struct {
	QMP    json.RawMessage `json:"QMP"`
	Event  string          `json:"event"`
	ID     *int            `json:"id"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

func newQMP(c net.Conn) *qmp { return &qmp{conn: c, in: bufio.NewReader(c)} }

// hello reads the greeting and leaves negotiation.
func (q *qmp) hello(ctx context.Context) error {
	release := q.deadline(ctx)
	m, err := q.read()
	release()
	if err != nil {
		return q.fail(ctx, "greeting", err)
	}
	if m.QMP == nil {
		return errors.New("qmp: greeting: not a QMP server")
	}
	return q.execute(ctx, "qmp_capabilities", nil, nil)
}

// execute runs one command and decodes what it returns into ret unless nil.
func (q *qmp) execute(ctx context.Context, command string, args, ret any) error {
	defer q.deadline(ctx)()
	q.next++
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
		ID        int    `json:"id"`
	}{command, args, q.next})
	if err != nil {
		return q.fail(ctx, command, err)
	}
	if _, err := q.conn.Write(append(line, '\n')); err != nil {
		return q.fail(ctx, command, err)
	}
	for {
		m, err := q.read()
		switch {
		case err != nil:
			return q.fail(ctx, command, err)
		case m.Event != "", m.ID == nil && m.Error == nil, m.ID != nil && *m.ID != q.next:
			continue // an event, or the late reply to a command given up
		case m.Error != nil:
			return fmt.Errorf("qmp: %s: %s (%s)", command, m.Error.Desc, m.Error.Class)
		case ret == nil:
			return nil
		}
		if err := json.Unmarshal(m.Return, ret); err != nil {
			return q.fail(ctx, command, err)
		}
		return nil
	}
}

// human runs a command of QEMU's human monitor and gives what it prints: "" is
// success for those that only do something.
func (q *qmp) human(ctx context.Context, line string) (string, error) {
	var out string
	err := q.execute(ctx, "human-monitor-command", map[string]string{"command-line": line}, &out)
	return out, err
}

// read reads one message, bounded.
func (q *qmp) read() (message, error) {
	var m message
	var line []byte
	for {
		part, err := q.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxReply {
			return m, fmt.Errorf("a message of more than %d bytes", maxReply)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if errors.Is(err, io.EOF) && len(line) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return m, err
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return m, fmt.Errorf("not JSON: %.60q", line)
	}
	return m, nil
}

// deadline bounds the next exchange by ctx and by qmpWait; the caller calls
// what it returns when the exchange is over.
func (q *qmp) deadline(ctx context.Context) func() {
	at := time.Now().Add(qmpWait)
	if d, ok := ctx.Deadline(); ok && d.Before(at) {
		at = d
	}
	// An error means a closed socket, and the exchange will say so.
	_ = q.conn.SetDeadline(at)
	stop := context.AfterFunc(ctx, func() { _ = q.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { stop() }
}

func (q *qmp) fail(ctx context.Context, what string, err error) error {
	if c := context.Cause(ctx); c != nil && !errors.Is(c, context.DeadlineExceeded) {
		return fmt.Errorf("qmp: %s: %w", what, c)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("qmp: %s: no answer in time: %w", what, err)
	}
	return fmt.Errorf("qmp: %s: %w", what, err)
}
