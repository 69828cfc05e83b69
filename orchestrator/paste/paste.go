// Package paste writes words of command lines that people are shown, to be pasted
// into a shell: a name in them does nothing there but name.
package paste

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word is s as one word of a command line for sh, bash, zsh and fish. Bytes that
// cannot be seen, or are no UTF-8, are written as bash, zsh and POSIX 2024 read
// them, on one line; fish refuses those.
func Word(s string) string {
	switch {
	case s == "":
		return "''"
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unseen):
		return visible(s)
	case strings.ContainsFunc(s, meaning) || s[0] == '=':
		return "'" + strings.NewReplacer("'", `'\''`, `\`, `'\\'`).Replace(s) + "'" // fish reads \ between quotes too
	}
	return s
}

// meaning tells what a shell may take for more than itself.
func meaning(r rune) bool {
	return r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./,:@%+=", r) || unicode.IsSpace(r)
}

func unseen(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

func visible(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(s[0])
		case r == utf8.RuneError && n == 1 || unseen(r):
			for _, c := range []byte(s[:n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	b.WriteByte('\'')
	return b.String()
}
