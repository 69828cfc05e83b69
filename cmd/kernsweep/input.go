package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// inputMost is how much standard input is given to several targets.
const inputMost = 64 << 20

// sharedInput gives every target all of one input, which is read once.
type sharedInput struct {
	mu     sync.Mutex
	more   *sync.Cond
	kept   *spool
	ended  error // io.EOF, or why the input failed
	closed bool
}

// shareInput begins to read in. A terminal is nobody's input: nil.
func shareInput(in io.Reader) *sharedInput {
	if f, ok := in.(*os.File); in == nil || ok && term.IsTerminal(int(f.Fd())) {
		return nil
	}
	s := &sharedInput{kept: &spool{most: inputMost}}
	s.more = sync.NewCond(&s.mu)
	go s.read(in)
	return s
}

func (s *sharedInput) read(in io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := in.Read(b)
		s.mu.Lock()
		if n > 0 && !s.closed {
			if _, werr := s.kept.Write(b[:n]); werr != nil {
				err = werr
			}
		}
		if s.kept.left > 0 {
			err = fmt.Errorf("standard input is longer than the %d MiB that several targets are given: use kernsweep push", inputMost>>20)
		}
		s.ended = err
		stop := err != nil || s.closed
		s.more.Broadcast()
		s.mu.Unlock()
		if stop {
			return
		}
	}
}

// reader reads the whole input from its beginning; nil: there is none.
func (s *sharedInput) reader() *inputReader {
	if s == nil {
		return nil
	}
	return &inputReader{s: s}
}

// Close ends all reading.
func (s *sharedInput) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.more.Broadcast()
	return s.kept.Close()
}

type inputReader struct {
	s    *sharedInput
	at   int64
	done bool
}

func (r *inputReader) Read(p []byte) (int, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	for r.at >= r.s.kept.size && r.s.ended == nil && !r.s.closed && !r.done {
		r.s.more.Wait()
	}
	switch {
	case r.s.closed || r.done:
		return 0, io.EOF
	case r.at >= r.s.kept.size:
		return 0, r.s.ended
	}
	n, err := r.s.kept.ReadAt(p[:min(int64(len(p)), r.s.kept.size-r.at)], r.at)
	r.at += int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Close ends a Read that waits for more.
func (r *inputReader) Close() error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.done = true
	r.s.more.Broadcast()
	return nil
}
