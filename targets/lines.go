package targets

// Limits of the line scanner: a console that never ends a line, or garbage that
// looks like an escape sequence, must neither grow memory nor swallow text.
const (
	maxLine   = 8192
	keepLine  = 512 // of a line cut at maxLine, so that a sign across the cut is found
	maxEscape = 64
)

// lineScanner cuts a console's bytes into lines, without escape sequences and
// control characters. The zero value is ready.
type lineScanner struct {
	buf []byte
	esc byte // 0 text, else the introducer: ESC, '[' CSI, ']' OSC, '(' one more
	n   int  // bytes inside the sequence
}

// add takes one byte and returns a line when it ended one. CR, LF and cursor
// positioning end a line; an empty one is not returned.
func (s *lineScanner) add(c byte) (string, bool) {
	if c == '\n' || c == '\r' {
		s.esc = 0
		return s.cut(0)
	}
	if s.esc != 0 {
		if s.escape(c) {
			return s.cut(0)
		}
		return "", false
	}
	switch {
	case c == 0x1b:
		s.esc, s.n = c, 0
	case c == '\b':
		if len(s.buf) > 0 {
			s.buf = s.buf[:len(s.buf)-1]
		}
	case c == '\t' || c >= 0x20 && c != 0x7f:
		s.buf = append(s.buf, c)
		if len(s.buf) >= maxLine {
			return s.cut(keepLine)
		}
	}
	return "", false
}

// escape takes a byte of an escape sequence; true says the sequence moved to
// another line.
func (s *lineScanner) escape(c byte) bool {
	s.n++
	switch {
	case c == 0x1b:
		s.esc, s.n = c, 0
	case s.n > maxEscape:
		s.esc = 0
	case s.esc == 0x1b:
		switch c {
		case '[', ']':
			s.esc = c
		case '(', ')', '#', '%':
			s.esc = '('
		default:
			s.esc = 0
		}
	case s.esc == '(':
		s.esc = 0
	case s.esc == ']':
		if c == 0x07 {
			s.esc = 0
		}
	case c >= 0x40 && c <= 0x7e: // the end of a CSI sequence
		s.esc = 0
		return c == 'H' || c == 'f' || c == 'J'
	}
	return false
}

// cut ends the line, keeping its last n bytes as the begin of the next.
func (s *lineScanner) cut(n int) (string, bool) {
	line := string(s.buf)
	s.buf = append(s.buf[:0], s.buf[len(s.buf)-min(n, len(s.buf)):]...)
	return line, line != ""
}

// partial is the line so far.
func (s *lineScanner) partial() string { return string(s.buf) }
