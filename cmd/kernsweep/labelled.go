package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"kernsweep/orchestrator/live"
)

// lineMost is how much of a line without an end is kept before it is shown.
const lineMost = 64 << 10

// onTerminal says whether people see what is written to w, as it is.
func onTerminal(w io.Writer) bool {
	for {
		switch x := w.(type) {
		case *checked:
			w = x.w
		case *outlet:
			w = x.w
		case *os.File:
			return term.IsTerminal(int(x.Fd()))
		default:
			return false
		}
	}
}

// inertLine is a line that cannot drive a terminal. Tabs stay.
func inertLine(line string) string { return live.SafeText(strings.TrimSuffix(line, "\r")) }

// oneWriter lets several write to w, each call whole.
type oneWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneWriter) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// labelled puts a name before every line, and writes whole lines only.
type labelled struct {
	name  string
	to    io.Writer // shared; each Write comes out whole
	inert bool
	own   bool // words of ours, some of which begin with the name already

	mu      sync.Mutex
	partial []byte
}

func (l *labelled) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out bytes.Buffer
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		rest = after
		l.partial = append(l.partial, line...)
		if whole || len(l.partial) >= lineMost {
			l.line(&out)
		}
	}
	if out.Len() > 0 {
		if _, err := l.to.Write(out.Bytes()); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func (l *labelled) line(out *bytes.Buffer) {
	label := l.name + ": "
	out.WriteString(label)
	text := l.partial
	if l.own {
		text = bytes.TrimPrefix(text, []byte(label))
	}
	if l.inert {
		out.WriteString(inertLine(string(text)))
	} else {
		out.Write(text)
	}
	out.WriteByte('\n')
	l.partial = l.partial[:0]
}

// Close shows a last line that had no end.
func (l *labelled) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) == 0 {
		return nil
	}
	var out bytes.Buffer
	l.line(&out)
	_, err := l.to.Write(out.Bytes())
	return err
}
