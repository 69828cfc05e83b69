package deploy

import (
	"bytes"
	"io"

	"kernsweep/workloads/wire"
)

// maxPreamble bounds a line before the spool, in bytes.
const maxPreamble = 64 << 10

// intake takes the agent's stdout: a ready line and an ended line, each at most
// once, then a spool.
type intake struct {
	w     io.Writer
	ready func()
	ended func(how string)
	head  []byte // of the line that is being read, before the spool
	begun bool   // the spool has begun
	err   error  // of w; the stream is drained all the same
}

func (i *intake) Write(p []byte) (int, error) {
	n := len(p)
	if !i.begun {
		p = i.preamble(p)
	}
	if i.begun && i.err == nil {
		_, i.err = i.w.Write(p)
	}
	return n, nil
}

// preamble takes the lines before the spool from p and returns the rest of it.
func (i *intake) preamble(p []byte) []byte {
	i.head = append(i.head, p...)
	for {
		line, rest, whole := bytes.Cut(i.head, []byte("\n"))
		switch {
		case !whole && (bytes.HasPrefix([]byte(wire.Ready), line) || bytes.HasPrefix(line, []byte(wire.Ended)) ||
			bytes.HasPrefix([]byte(wire.Ended), line)) && len(line) < maxPreamble:
			return nil
		case whole && string(line)+"\n" == wire.Ready:
			if i.ready != nil {
				i.ready()
			}
		case whole && bytes.HasPrefix(line, []byte(wire.Ended)):
			if i.ended != nil {
				i.ended(string(line[len(wire.Ended):]))
			}
		default:
			i.begun = true
			return i.head
		}
		i.head = rest
	}
}

// head keeps the first bytes of a stream.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), 4096-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.b) }
