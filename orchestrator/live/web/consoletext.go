package web

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"kernsweep/orchestrator/live"
)

const longestEscape = 256 // bytes that are held back for the end of an escape sequence

// consoleText makes lines of text of a console's bytes as they come: escape
// sequences are left out, other controls become visible.
type consoleText struct{ held []byte }

// add gives the text of what was said, without a character or sequence that is
// not whole yet.
func (c *consoleText) add(b []byte) string {
	all := append(c.held, b...)
	cut := len(all) - unfinished(all)
	c.held = append([]byte(nil), all[cut:]...)
	return plainText(string(all[:cut]))
}

// plainText is console output without what drives a terminal.
func plainText(s string) string {
	s = strings.ReplaceAll(ansi.Strip(strings.ToValidUTF8(s, "·")), "\r", "")
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = live.Safe(lines[i])
	}
	return strings.Join(lines, "\n")
}

// unfinished is the length of a tail that may be the beginning of something.
func unfinished(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			break
		}
	}
	from := max(0, len(b)-longestEscape)
	for i := len(b) - 1; i >= from; i-- {
		if b[i] != 0x1b {
			continue
		}
		if _, _, n, state := ansi.DecodeSequence(b[i:], ansi.NormalState, nil); state != ansi.NormalState || n == 1 {
			return len(b) - i
		}
		break
	}
	return 0
}
