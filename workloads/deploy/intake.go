package deploy

import (
	"bytes"
	"io"
)

// readyLine precedes a spool once the task owns its port.
const readyLine = "ready\n"

// intake takes the agent's stdout: an optional ready line, then a spool.
type intake struct {
	w     io.Writer
	ready func()
	head  []byte // the first bytes, while they may still be a ready line
	begun bool   // the spool has begun
	err   error  // of w; the stream is drained all the same
}

func (i *intake) Write(p []byte) (int, error) {
	n := len(p)
	if !i.begun {
		i.head = append(i.head, p...)
		if len(i.head) < len(readyLine) && bytes.HasPrefix([]byte(readyLine), i.head) {
			return n, nil
		}
		i.begun = true
		p = i.head
		if rest, ok := bytes.CutPrefix(p, []byte(readyLine)); ok {
			p = rest
			if i.ready != nil {
				i.ready()
			}
		}
	}
	if i.err == nil {
		_, i.err = i.w.Write(p)
	}
	return n, nil
}

// head keeps the first bytes of a stream.
type head struct{ b []byte }

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), 4096-len(h.b))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.b) }
