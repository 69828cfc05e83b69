package sshconn

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"kernsweep/targets"
)

// streams are the three streams of a running command.
type streams struct {
	out     *preamble
	errs    *gate
	passed  atomic.Int64  // bytes of both outputs
	writing atomic.Int32  // outputs whose owner takes some now
	failed  chan error    // first error of a stream's owner
	drained chan struct{} // both outputs have ended
}

// connect copies the streams, both outputs at once, so that neither can fill
// the window they share.
func (s *session) connect(cmd targets.Cmd, out *preamble) *streams {
	st := &streams{out: out, errs: newGate(cmd.Stderr), failed: make(chan error, 3), drained: make(chan struct{})}
	ended := make(chan struct{}, 2)
	pump := func(w io.Writer, g *gate, r io.Reader) {
		_, err := io.Copy(&metered{w, st}, r) // of the gate, or errChatty: the channel only ever ends
		if g.err() != nil {
			st.failed <- g.err()
		} else if err == errChatty {
			st.failed <- err
		}
		ended <- struct{}{}
	}
	go pump(out, out.out, s.ch)
	go pump(io.MultiWriter(&out.problems, st.errs), st.errs, s.ch.Stderr())
	go func() {
		<-ended
		<-ended
		close(st.drained)
	}()
	go func() {
		defer s.ch.CloseWrite()
		if cmd.Stdin == nil {
			return
		}
		in := &source{r: cmd.Stdin}
		_, _ = io.Copy(s.ch, in) // a write fails when the command no longer reads
		if err := in.err(); err != nil {
			st.failed <- fmt.Errorf("standard input: %w", err)
		}
	}()
	return st
}

// progress says how far a command came whose time was up.
func (st *streams) progress(exit *targets.Exit, drained bool) string {
	switch {
	case exit != nil:
		return "the command ended, but its output did not"
	case drained:
		return "the command's output ended, but its exit status has not come"
	case st.out.pid.Load() == 0:
		return "the login shell has not started the command (a start-up file that waits?)"
	}
	return "the command was still running and was ended"
}

func (st *streams) firstError() error {
	select {
	case err := <-st.failed:
		return err
	default:
		return nil
	}
}

// shut keeps the outputs from being written to after Run has returned.
func (st *streams) shut() {
	st.out.out.shut()
	st.errs.shut()
}

// source keeps the error of a reader apart from that of the copy.
type source struct {
	r io.Reader

	mu     sync.Mutex
	failed error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
	}
	return n, err
}

// err is the reader's own error, nil if it has none.
func (s *source) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// metered counts what a stream's owner takes.
type metered struct {
	w  io.Writer
	st *streams
}

func (m *metered) Write(p []byte) (int, error) {
	m.st.writing.Add(1)
	n, err := m.w.Write(p)
	m.st.passed.Add(int64(n))
	m.st.writing.Add(-1)
	return n, err
}

// drain watches the output that comes after a command's end.
type drain struct {
	st    *streams
	ended time.Time
	first int64 // bytes that had passed then
	last  int64 // and at the last look
}

func (st *streams) drain() *drain {
	n := st.passed.Load()
	return &drain{st, time.Now(), n, n}
}

// goesOn says that what is on its way has come on since the last look, and can
// still be the command's own.
func (d *drain) goesOn() bool {
	now := d.st.passed.Load()
	moved := now != d.last || d.st.writing.Load() > 0
	d.last = now
	return moved && now-d.first < drainBytes && time.Since(d.ended) < drainMost
}
