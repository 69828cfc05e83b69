package report

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Inert gives a writer of JSON that a terminal may be shown: characters that
// drive one, or turn the direction of text, are written as \u escapes, which mean
// the same. What is written at once must hold whole characters.
func Inert(w io.Writer) io.Writer { return inert{w} }

type inert struct{ w io.Writer }

func (x inert) Write(b []byte) (int, error) {
	if _, err := x.w.Write(escaped(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// escaped is JSON text without characters that json leaves and a terminal obeys.
func escaped(b []byte) []byte {
	if bytes.IndexFunc(b, driving) < 0 {
		return b
	}
	out := make([]byte, 0, len(b)+64)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if driving(r) {
			for _, u := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		} else {
			out = append(out, b[:n]...)
		}
		b = b[n:]
	}
	return out
}

func driving(r rune) bool {
	return r >= 0x7f && hidden(r)
}
