package config

import (
	"bytes"
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxNesting bounds what HCL's recursive parser may be asked to do: its stack
// overflow cannot be caught. It counts open brackets, and operators in one
// expression, for each of them is a level of recursion too.
const maxNesting = 200

// maxTokens bounds a file in words and signs, each of which costs the parser a
// few hundred bytes.
const maxTokens = 200_000

// lexWindow is how many bytes are lexed at a time while counting, so that a
// bomb costs memory for one window only.
const lexWindow = 32 << 10

// tooDeep finds the first token nested deeper than maxNesting, or one too many,
// before any parser runs. what is the complaint, "" when there is none.
func tooDeep(src []byte, name string) (at Pos, what, detail string) {
	start, size, before := hcl.InitialPos, lexWindow, 0
	for {
		end := min(start.Byte+size, len(src))
		last := end == len(src)
		// The diagnostics come again from the parser.
		tokens, _ := hclsyntax.LexConfig(src[start.Byte:end], name, start)
		c := counter{}
		next, taken := start, 0
		for i, t := range tokens {
			if c.take(t) > maxNesting {
				return posOf(t.Range), fmt.Sprintf("nested deeper than %d", maxNesting), "count the " + c.what + " here"
			}
			if before+i >= maxTokens {
				return posOf(t.Range), fmt.Sprintf("more than %d words and signs in one file", maxTokens), "split it: a directory of files is read too"
			}
			if len(c.open) == 0 && endsLine(t) {
				next, taken = t.Range.End, i+1
			}
		}
		if last {
			return Pos{}, "", ""
		}
		if next.Byte == start.Byte {
			size *= 2 // one construct fills the window: take a larger one
			continue
		}
		start, size, before = next, lexWindow, before+taken
	}
}

// counter follows the nesting of one token stream.
type counter struct {
	open []level
	top  level
	what string
	ctrl bool // the last token opened a template directive
}

type level struct {
	kind hclsyntax.TokenType
	ops  int // operators of the expression under way
	dirs int // open %{if} and %{for} of a template
}

// take counts one token and returns the depth there.
func (c *counter) take(t hclsyntax.Token) int {
	l := &c.top
	if n := len(c.open); n > 0 {
		l = &c.open[n-1]
	}
	if c.ctrl {
		c.ctrl = false
		c.directive(t)
	}
	switch t.Type {
	case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen,
		hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl,
		hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc:
		if !isTemplate(l.kind) { // a template is a flat list of parts
			l.ops++
		}
		c.open = append(c.open, level{kind: t.Type})
		c.ctrl = t.Type == hclsyntax.TokenTemplateControl
	case hclsyntax.TokenCBrace, hclsyntax.TokenCBrack, hclsyntax.TokenCParen,
		hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
		if n := len(c.open); n > 0 {
			c.open = c.open[:n-1]
		}
	case hclsyntax.TokenComma:
		l.ops = 0
	case hclsyntax.TokenNewline, hclsyntax.TokenComment:
		if endsLine(t) && (l.kind == 0 || l.kind == hclsyntax.TokenOBrace) {
			l.ops = 0
		}
	case hclsyntax.TokenIdent, hclsyntax.TokenNumberLit, hclsyntax.TokenEOF,
		hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit:
	default:
		l.ops++
	}
	return c.depth(l)
}

// endsLine says that t is a line end; a # comment takes its line end with it.
func endsLine(t hclsyntax.Token) bool {
	return t.Type == hclsyntax.TokenNewline ||
		t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))
}

func isTemplate(k hclsyntax.TokenType) bool {
	return k == hclsyntax.TokenOQuote || k == hclsyntax.TokenOHeredoc
}

// depth is the larger of the open brackets and the operators of an expression.
func (c *counter) depth(l *level) int {
	brackets := 0
	for i := range c.open {
		if !isTemplate(c.open[i].kind) {
			brackets++
		}
		brackets += c.open[i].dirs
	}
	if brackets >= l.ops {
		c.what = "brackets, blocks or templates"
		return brackets
	}
	c.what = "operators in one expression"
	return l.ops
}

// directive counts nested template directives; they close by a keyword.
func (c *counter) directive(t hclsyntax.Token) {
	n := len(c.open)
	if t.Type != hclsyntax.TokenIdent || n < 2 {
		return
	}
	in := &c.open[n-2]
	switch {
	case bytes.Equal(t.Bytes, []byte("if")), bytes.Equal(t.Bytes, []byte("for")):
		in.dirs++
	case bytes.HasPrefix(t.Bytes, []byte("end")):
		in.dirs = max(0, in.dirs-1)
	}
}
