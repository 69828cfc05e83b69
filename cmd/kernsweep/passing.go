package main

import (
	"bytes"
	"io"
	"unicode/utf8"

	"kernsweep/orchestrator/live"
)

// passing shows a terminal the output of one command as it comes, also a line
// that has no end yet, so that nothing of it drives the terminal.
type passing struct {
	w    io.Writer
	rest []byte // of a character, or a CR that may end a line
}

// passed is where a command's output goes as it is, unless people see it there.
func passed(w io.Writer) (to io.Writer, end func()) {
	if !onTerminal(w) {
		return w, func() {}
	}
	p := &passing{w: w}
	return p, p.end
}

func (p *passing) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	n := len(text)
	if n > 0 && text[n-1] == '\r' {
		n--
	} else {
		for i := max(0, n-utf8.UTFMax+1); i < n; i++ {
			if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:n]) {
				n = i
			}
		}
	}
	p.rest = bytes.Clone(text[n:])
	if _, err := io.WriteString(p.w, live.SafeText(string(bytes.ReplaceAll(text[:n], []byte("\r\n"), []byte("\n"))))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// end shows what would have become more than it is.
func (p *passing) end() {
	_, _ = io.WriteString(p.w, live.SafeText(string(bytes.TrimSuffix(p.rest, []byte("\r"))))) // the command's own status counts
	p.rest = nil
}
