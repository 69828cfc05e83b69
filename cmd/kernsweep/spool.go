package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	spoolMemory = 64 << 10 // of one stream; more goes to a temporary file
	spoolMost   = 16 << 20 // of one stream that is kept to be shown later
)

// spool keeps what one stream said: a little in memory, more in a temporary file
// that nobody sees, and what is beyond most only as a number of bytes. It is not
// safe for concurrent use.
type spool struct {
	most int64
	mem  []byte
	file *os.File
	size int64 // kept
	left int64 // not kept
}

func newSpool() *spool { return &spool{most: spoolMost} }

// Write never fails for lack of room under most.
func (s *spool) Write(p []byte) (int, error) {
	keep := p[:min(int64(len(p)), s.most-s.size)]
	s.left += int64(len(p) - len(keep))
	if s.file == nil && len(s.mem)+len(keep) <= spoolMemory {
		s.mem = append(s.mem, keep...)
		s.size += int64(len(keep))
		return len(p), nil
	}
	if err := s.spill(); err != nil {
		return 0, err
	}
	n, err := s.file.Write(keep)
	s.size += int64(n)
	if err != nil {
		return n, fmt.Errorf("keeping the output: %w", err)
	}
	return len(p), nil
}

// spill moves what is in memory to a file that has no name any more.
func (s *spool) spill() error {
	if s.file != nil {
		return nil
	}
	f, err := os.CreateTemp("", "kernsweep-output-*")
	if err != nil {
		return fmt.Errorf("keeping the output: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(s.mem)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("keeping the output: %w", err), f.Close())
	}
	s.file, s.mem = f, nil
	return nil
}

// reader reads what was kept from the beginning.
func (s *spool) reader() io.Reader {
	return io.NewSectionReader(s, 0, s.size)
}

// ReadAt is io.ReaderAt.
func (s *spool) ReadAt(p []byte, at int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, at)
	}
	if at >= int64(len(s.mem)) {
		return 0, io.EOF
	}
	n := copy(p, s.mem[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// sum is the same for the same output.
func (s *spool) sum() ([sha256.Size]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, s.reader()); err != nil {
		return [sha256.Size]byte{}, err
	}
	fmt.Fprintf(h, " and %d bytes more", s.left)
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (s *spool) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
