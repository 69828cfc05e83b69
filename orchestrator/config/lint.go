package config

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// lintTokens finds what the parser accepts and a person would not want:
// control characters in strings, and heredocs whose indentation is mixed.
func (l *loader) lintTokens(name string, src []byte, tokens hclsyntax.Tokens) {
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
			l.lintControl(t)
		case hclsyntax.TokenOHeredoc:
			if bytes.HasPrefix(t.Bytes, []byte("<<-")) {
				l.lintHeredoc(name, src, tokens[i:])
			}
		}
	}
}

// lintControl reports control characters in a literal part of a string, typed
// or escaped.
func (l *loader) lintControl(t hclsyntax.Token) {
	col := t.Range.Start.Column
	for b := t.Bytes; len(b) > 0; col++ {
		r, n := utf8.DecodeRune(b)
		if t.Type == hclsyntax.TokenQuotedLit && r == '\\' {
			r, n = escaped(b)
		}
		if badControl(r) {
			p := posOf(t.Range)
			p.Col = col
			l.control(p, r)
			l.raw = append(l.raw, t.Range)
			return
		}
		if n > 1 && b[0] == '\\' {
			col += n - 1
		}
		b = b[n:]
	}
}

func (l *loader) control(p Pos, r rune) {
	detail := "only tab and newline may stand there"
	if r == '\r' {
		detail += "; if the file has Windows line ends, convert it (for example by dos2unix)"
	}
	l.value(p, detail, "control character U+%04X in a string", r)
}

// escaped decodes one escape sequence; r is a harmless rune for those that
// cannot make a control character.
func escaped(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return ' ', len(b)
	}
	digits := map[byte]int{'u': 4, 'U': 8}[b[1]]
	if digits > 0 && len(b) >= 2+digits {
		if v, err := strconv.ParseUint(string(b[2:2+digits]), 16, 32); err == nil {
			return rune(v), 2 + digits
		}
	}
	if b[1] == 'r' {
		return '\r', 2
	}
	_, size := utf8.DecodeRune(b[1:])
	return ' ', 1 + size
}

func badControl(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }

// lintHeredoc warns when the stripped indentation differs in kind between
// lines: the library counts a tab and a space alike.
func (l *loader) lintHeredoc(name string, src []byte, tokens hclsyntax.Tokens) {
	end, open := len(src), 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			open++
		case hclsyntax.TokenCHeredoc:
			open--
		}
		if open == 0 {
			end = t.Range.Start.Byte
			break
		}
	}
	first := tokens[0].Range.End
	lines := strings.Split(string(src[min(first.Byte, end):end]), "\n")
	lines = lines[:len(lines)-1] // the rest stands before the end marker
	strip := -1
	for _, s := range lines {
		if in := indent(s); strings.TrimSpace(s) != "" && (strip < 0 || len(in) < strip) {
			strip = len(in)
		}
	}
	count := map[string]int{}
	for _, s := range lines {
		if strings.TrimSpace(s) != "" {
			count[s[:strip]]++
		}
	}
	if len(count) < 2 {
		return
	}
	least, at := 0, 0
	for i, s := range lines {
		if strings.TrimSpace(s) == "" {
			continue
		}
		if n := count[s[:strip]]; least == 0 || n < least {
			least, at = n, i
		}
	}
	l.warn(Pos{File: name, Line: first.Line + at, Col: 1},
		"a tab counts as one space when it is stripped, so blanks are left over; indent all lines alike, or read the text by file(\"…\")",
		"tab and spaces mixed in the indentation of an indent-stripped heredoc")
}

func indent(s string) string { return s[:len(s)-len(strings.TrimLeft(s, " \t"))] }

// plainNumber is a spelling that a number keeps when it becomes text.
var plainNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]*[1-9])?$`)

// lintNumbers refuses literals such as 5.10, 0755 or 1e3 where their spelling
// may matter: everywhere but as the value of a numeric attribute. The message
// never holds the converted value.
func (l *loader) lintNumbers(e hclsyntax.Expression) {
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		lit, ok := n.(*hclsyntax.LiteralValueExpr)
		if !ok || lit.Val.IsNull() || lit.Val.Type() != cty.Number {
			return nil
		}
		if src := l.text(lit.SrcRange); !plainNumber.MatchString(src) {
			l.value(posOf(lit.SrcRange), "as a number it would lose its spelling; if a number is meant, write it plainly",
				"a number where text is wanted: put it in quotes")
		}
		return nil
	})
}

// text is the source text of a range.
func (l *loader) text(r hcl.Range) string {
	src := l.src[r.Filename]
	if r.Start.Byte > r.End.Byte || r.End.Byte > len(src) {
		return ""
	}
	return string(src[r.Start.Byte:r.End.Byte])
}

// secretName says that an attribute, a local or a variable called name holds a
// secret.
func secretName(name string) bool {
	for _, word := range []string{"password", "passphrase", "passwd", "token", "secret"} {
		if strings.HasSuffix(strings.ToLower(name), word) {
			return true
		}
	}
	return false
}
