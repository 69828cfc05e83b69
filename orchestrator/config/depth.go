package config

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxNesting bounds what HCL's recursive parser may be asked to do: its stack
// overflow cannot be caught. It counts open brackets, and operators in one
// expression, for each of them is a level of recursion too.
const maxNesting = 200

// lexWindow is how many bytes are lexed at a time while counting, so that a
// bomb costs memory for one window only.
const lexWindow = 32 << 10

// tooDeep finds the first token nested deeper than maxNesting, before any
// parser runs. ok is true when there is none.
func tooDeep(src []byte, name string) (at Pos, what string, ok bool) {
	start, size := hcl.InitialPos, lexWindow
	for {
		end := min(start.Byte+size, len(src))
		last := end == len(src)
		// The diagnostics come again from the parser.
		tokens, _ := hclsyntax.LexConfig(src[start.Byte:end], name, start)
		c := counter{}
		next := start
		for _, t := range tokens {
			if c.take(t) > maxNesting {
				return Pos{File: name, Line: t.Range.Start.Line, Col: t.Range.Start.Column}, c.what, false
			}
			if len(c.open) == 0 && endsLine(t) {
				next = t.Range.End
			}
		}
		if last {
			return Pos{}, "", true
		}
		if next.Byte == start.Byte {
			size *= 2 // one construct fills the window: take a larger one
			continue
		}
		start, size = next, lexWindow
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
