package sshconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"kernsweep/targets"
)

const (
	pidMark       = "kernsweep-pid="
	preambleLimit = 64 << 10
	shellTimeout  = 15 * time.Second
)

var errChatty = errors.New("the login shell prints without end before it runs the command")

// preamble takes the line with the process id out of a command's output, and
// with it whatever start-up files of the login shell printed before. A command
// that ends without this line was never run: a restricted login shell, a forced
// command or a locked account answers everything with some status.
type preamble struct {
	out      *gate
	pid      atomic.Int64  // 0 until the line came
	known    chan struct{} // closed then
	before   []byte
	problems head // of standard error
}

func newPreamble(w io.Writer) *preamble {
	return &preamble{out: newGate(w), known: make(chan struct{})}
}

func (p *preamble) Write(b []byte) (int, error) {
	if p.pid.Load() != 0 {
		return p.out.Write(b)
	}
	p.before = append(p.before, b...)
	if pid, rest, ok := findPid(p.before); ok {
		p.before = nil
		p.pid.Store(pid)
		close(p.known)
		if len(rest) == 0 {
			return len(b), nil
		}
		_, err := p.out.Write(rest)
		return len(b), err
	}
	if len(p.before) > preambleLimit {
		return 0, errChatty
	}
	return len(b), nil
}

// findPid finds the line with the process id, and what follows it. A start-up
// file may print the mark too, as one that traces its commands does.
func findPid(b []byte) (pid int64, rest []byte, ok bool) {
	for {
		_, after, found := bytes.Cut(b, []byte(pidMark))
		if !found {
			return 0, nil, false
		}
		digits, rest, whole := bytes.Cut(after, []byte("\n"))
		if pid, err := strconv.ParseInt(string(digits), 10, 64); whole && err == nil && pid > 0 {
			return pid, rest, true
		}
		b = after
	}
}

// head keeps the first bytes written to it. It never fails.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	if room := headSize - len(h.b); room > 0 {
		h.b = append(h.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// shellError says which login shell did not run a command. Both outputs of
// the command have ended, so their beginnings can be read.
func (c *conn) shellError(ctx context.Context, out *preamble) error {
	said := firstLine(string(out.before) + string(out.problems.b))
	return &targets.LinkError{Phase: "exec", Err: fmt.Errorf(
		"%s: the login shell of user %s (%s) did not run the command through /bin/sh; it said %q; give the user an ordinary login shell "+
			"(as root on the target: chsh -s /bin/sh %s) and no forced command, or log in as another user",
		c.h, c.h.user, c.shellName(ctx), said, c.h.user)}
}

// shellName asks in words that every shell understands.
func (c *conn) shellName(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, shellTimeout)
	defer cancel()
	var out bytes.Buffer
	plain := newPreamble(&out)
	plain.pid.Store(1) // no line is expected
	if _, err := c.exec(ctx, "echo $SHELL", targets.Cmd{}, plain); err != nil {
		return "name unknown: " + err.Error()
	}
	if name := lastLine(out.String()); strings.HasPrefix(name, "/") {
		return name
	}
	return "name unknown, since it does not run echo"
}
