package tftp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// mostText bounds a file that is sent as netascii, which is converted as a whole.
const mostText = 1 << 20

// readAhead is read at once from a file, so that small blocks cost no system call each.
const readAhead = 64 << 10

// source is an open file as a transfer sees it. One goroutine uses it.
type source struct {
	from  io.ReaderAt
	close func() error
	size  int64
	ahead []byte // what was read last
	at    int64  // its place in the file
}

// openSource opens a regular file; mode is "octet" or "netascii".
func openSource(path, mode string) (*source, error) {
	if i, err := os.Stat(path); err != nil {
		return nil, err
	} else if !i.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	i, err := f.Stat()
	if err == nil && mode == "netascii" && i.Size() > mostText {
		err = fmt.Errorf("netascii is for text: ask for octet (binary) mode, this file has %d bytes", i.Size())
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, err
	}
	if mode != "netascii" {
		return &source{from: f, close: f.Close, size: i.Size()}, nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return nil, err
	}
	text = netascii(text)
	return &source{from: bytes.NewReader(text), close: func() error { return nil }, size: int64(len(text))}, nil
}

// netascii spells line ends as RFC 764 has them: LF becomes CR LF, CR becomes CR NUL.
func netascii(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte{'\r'}, []byte{'\r', 0})
	return bytes.ReplaceAll(b, []byte{'\n'}, []byte{'\r', '\n'})
}

// read fills p from off: all of it, or up to the end of the file.
func (s *source) read(p []byte, off int64) error {
	if off < s.at || off+int64(len(p)) > s.at+int64(len(s.ahead)) {
		if s.ahead == nil {
			s.ahead = make([]byte, 0, int(min(readAhead+mostBlock, max(s.size, 1))))
		}
		n, err := s.from.ReadAt(s.ahead[:cap(s.ahead)], off)
		s.at, s.ahead = off, s.ahead[:n]
		if n < len(p) {
			if err == nil || errors.Is(err, io.EOF) {
				err = errors.New("the file became shorter meanwhile")
			}
			return err
		}
	}
	copy(p, s.ahead[off-s.at:])
	return nil
}
