package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Limits of what a dialogue keeps: the console's recording has the rest.
const (
	keepText  = 64 << 10
	keepShown = 5 // lines in an error
	maxEscape = 64
)

// text is what a console has said, as a reader sees it: without escape sequences,
// carriage returns and what backspaces took away. The oldest goes when it grows.
type text struct {
	buf []byte
	esc byte // 0 none, else the introducer of a sequence: ESC, '[', ']' or '('
	n   int  // bytes of the sequence
}

// add takes bytes of the console.
func (t *text) add(p []byte) {
	for _, c := range p {
		switch {
		case t.esc != 0:
			t.escape(c)
		case c == 0x1b:
			t.esc, t.n = c, 0
		case c == '\b':
			if n := len(t.buf); n > 0 && t.buf[n-1] != '\n' {
				t.buf = t.buf[:n-1]
			}
		case c == '\n' || c == '\t' || c >= 0x20 && c != 0x7f:
			t.buf = append(t.buf, c)
		}
	}
	if over := len(t.buf) - keepText; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// escape takes a byte of an escape sequence. A sequence that never ends, or that
// a line's end cuts off, is garbage and must not swallow what follows.
func (t *text) escape(c byte) {
	t.n++
	switch {
	case c == '\n':
		t.esc = 0
		t.buf = append(t.buf, c)
	case c == 0x1b:
		t.esc, t.n = c, 0
	case t.n > maxEscape:
		t.esc = 0
	case t.esc == 0x1b && (c == '[' || c == ']'):
		t.esc = c
	case t.esc == 0x1b && (c == '(' || c == ')' || c == '#' || c == '%'):
		t.esc = '('
	case t.esc == ']' && c != 0x07:
	case t.esc == '[' && (c < 0x40 || c > 0x7e):
	default:
		t.esc = 0
	}
}

// last is the line that has no end yet.
func (t *text) last() string {
	return string(t.buf[bytes.LastIndexByte(t.buf, '\n')+1:])
}

// take returns all and empties the text.
func (t *text) take() string {
	s := string(t.buf)
	t.buf = t.buf[:0]
	return s
}

// TimeoutError says what a console did not show in time.
type TimeoutError struct {
	Want   string // what was waited for
	Waited time.Duration
	Last   []string // lines shown instead, newest last
}

func (e *TimeoutError) Error() string {
	s := fmt.Sprintf("the console did not show %s within %s", e.Want, e.Waited.Round(time.Millisecond))
	if len(e.Last) == 0 {
		return s + ": it said nothing"
	}
	return s + "; its last lines: " + strings.Join(quoted(e.Last), ", ")
}

func quoted(lines []string) []string {
	q := make([]string, len(lines))
	for i, l := range lines {
		q[i] = fmt.Sprintf("%.120q", l)
	}
	return q
}

// shown is the end of a text for an error: its last lines that are not empty.
func shown(s string) []string {
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, strings.ToValidUTF8(l, "?"))
		}
	}
	return lines[max(0, len(lines)-keepShown):]
}

// errQuiet is the cause of a wait that has ended without news.
var errQuiet = errors.New("the console is quiet")

// more reads what comes within d. It reports false when nothing came. Its error is
// ctx's cause or says that the console has closed.
func (d *Dialogue) more(ctx context.Context, wait time.Duration) (bool, error) {
	wctx, stop := context.WithTimeoutCause(ctx, wait, errQuiet)
	defer stop()
	b, err := d.Channel.Next(wctx)
	if errors.Is(err, errQuiet) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	d.text.add(b)
	return true, nil
}

// Expect waits until one of the expressions matches what the console says, and
// takes the text up to the end of that match. Of several the one that matches
// first in the stream counts, of those that begin together the first given. An
// expression must say where it ends, for more may follow what was read so far.
// Its error is a *TimeoutError after within, ctx's cause, or that the console closed.
func (d *Dialogue) Expect(ctx context.Context, within time.Duration, want ...*regexp.Regexp) (which int, said string, err error) {
	begin := time.Now()
	for {
		which, at, end := -1, 0, 0
		for i, re := range want {
			if m := re.FindIndex(d.text.buf); m != nil && (which < 0 || m[0] < at) {
				which, at, end = i, m[0], m[1]
			}
		}
		if which >= 0 {
			said := string(d.text.buf[:end])
			d.text.buf = append(d.text.buf[:0], d.text.buf[end:]...)
			return which, said, nil
		}
		left := within - time.Since(begin)
		if left <= 0 {
			return -1, "", d.timeout(names(want), within)
		}
		if _, err := d.more(ctx, left); err != nil {
			return -1, "", err
		}
	}
}

func names(want []*regexp.Regexp) string {
	s := make([]string, len(want))
	for i, re := range want {
		s[i] = fmt.Sprintf("%q", re)
	}
	return strings.Join(s, " or ")
}

func (d *Dialogue) timeout(want string, waited time.Duration) error {
	return &TimeoutError{Want: want, Waited: waited, Last: shown(string(d.text.buf))}
}
