package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"kernsweep/targets"
)

const (
	// maxBusy and busyPause bound the log-ins at a server that is busy with
	// others: with the doubled pauses 7.5 s are waited.
	maxBusy   = 4
	busyPause = 500 * time.Millisecond
)

// jump is one jump host with its connection.
type jump struct {
	client *ssh.Client
	h      host
}

// way is the jump hosts in front of a machine, the first to be passed first.
type way []jump

// close ends the connections to the jump hosts.
func (w way) close() {
	w.cut()
	for _, j := range w {
		_ = j.client.Wait() // it says why it ended: we closed it
	}
}

// cut ends the connections to the jump hosts without waiting for them.
func (w way) cut() {
	for _, j := range w {
		j.client.Close()
	}
}

// broken finds the first jump host that is gone or silent, and says so; -1 and
// nil if all of them answer.
func (w way) broken() (int, error) {
	for i, j := range w {
		ctx, stop := context.WithTimeout(context.Background(), pingTimeout)
		err := ping(ctx, j.client)
		stop()
		switch {
		case err == nil:
			continue
		case errors.Is(err, context.DeadlineExceeded):
			err = fmt.Errorf("it does not answer any more: %w", err)
		default:
			err = fmt.Errorf("the connection to it was lost: it went down, or its server process was killed: %w", err)
		}
		return i, fmt.Errorf("jump host %d of %d: %s: %w", i+1, len(w), j.h, err)
	}
	return -1, nil
}

// fault is the error of a jump host that is at fault for a handshake with h that
// was not done in time; nil if all of them answer, or nobody waits any more.
func (w way) fault(ctx context.Context, h host) *targets.LinkError {
	if ctx.Err() != nil {
		return nil
	}
	i, why := w.broken()
	if why == nil {
		return nil
	}
	return &targets.LinkError{Phase: "handshake", Hop: w[i].h.String(), Err: fmt.Errorf("%s: %w", h, why)}
}

// explain says why h was not reached over w, and blames the right machine.
func (w way) explain(ctx context.Context, h host, err error) *targets.LinkError {
	l := &targets.LinkError{Phase: "connect", Err: fmt.Errorf("%s: %w", h, explainConnect(ctx, h, err))}
	if len(w) == 0 {
		return l
	}
	last := w[len(w)-1]
	var open *ssh.OpenChannelError
	switch {
	case errors.As(err, &open) && open.Reason == ssh.Prohibited:
		l.Hop, l.Refused = last.h.String(), true
		l.Err = fmt.Errorf("%s: jump host %d of %d: %s does not forward connections to it (%s): is AllowTcpForwarding or PermitOpen set there? %w",
			h, len(w), len(w), last.h, open.Message, err)
	case errors.As(err, &open):
		l.Err = fmt.Errorf("%s: the jump host in front of it, %s, could not connect to it (%s): %w", h, last.h, open.Message, err)
	case ctx.Err() == nil:
		if i, why := w.broken(); why != nil {
			l.Hop, l.Err = w[i].h.String(), fmt.Errorf("%s: %w", h, why)
		}
	}
	return l
}

// turnedAway says that a server closed the connection before its version: it has
// as many log-ins under way as it allows, or is just starting or stopping.
func turnedAway(err *targets.LinkError, l *link) bool {
	if err.Phase != "handshake" || l == nil || err.Refused {
		return false
	}
	closed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	begin := l.begin()
	return closed && (begin == "" || busyWords(begin))
}

// busyWords are what OpenSSH says to those that it turns away.
func busyWords(begin string) bool {
	return strings.HasPrefix(begin, "Exceeded MaxStartups") || strings.HasPrefix(begin, "Not allowed at this time")
}
