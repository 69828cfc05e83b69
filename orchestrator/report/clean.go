package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean makes text from a device safe to print: control characters, bytes that
// are no UTF-8 and characters that turn the direction of writing become visible
// escapes, so that no console line can move the cursor or forge a line. A line
// end inside a text becomes a bar.
func clean(s string) string {
	if !strings.ContainsFunc(s, hidden) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n':
			b.WriteString(" | ")
		case r == utf8.RuneError && n == 1, r < 0x100 && hidden(r):
			c := s[0]
			if n > 1 {
				c = byte(r)
			}
			fmt.Fprintf(&b, `\x%02x`, c)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// cut shortens s to n columns, marking the loss.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// wrap breaks text at spaces into lines of at most width columns; every line
// after the first is indented. A longer word is broken hard.
func wrap(s string, width int, indent string) []string {
	var lines []string
	rest, lead := []rune(strings.TrimRight(s, " ")), ""
	for len(lead)+len(rest) > width {
		room := width - len(lead)
		at := room
		for at > 0 && (rest[at] != ' ' || rest[at+1] == '%') { // "5 %" stays together
			at--
		}
		if strings.TrimSpace(string(rest[:at])) == "" {
			at = room
		}
		lines = append(lines, strings.TrimRight(lead+string(rest[:at]), " "))
		rest, lead = rest[at:], indent
		for len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
	}
	return append(lines, lead+string(rest))
}

// command wraps a command line so that it can still be copied.
func command(s string, width int, indent string) []string {
	lines := wrap(s, width-2, indent)
	for i := range lines[:len(lines)-1] {
		lines[i] += ` \`
	}
	return lines
}

func columns(s string) int { return utf8.RuneCountInString(s) }
