package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// manText is a man page in the making: plain text goes in, and is text on the page
// whatever is in it.
type manText struct{ b bytes.Buffer }

func newManText(name, section, date, short string) *manText {
	p := &manText{}
	fmt.Fprintf(&p.b, ".TH %q %q %q %q %q\n", strings.ToUpper(name), section, date, "kernsweep", "kernsweep")
	p.b.WriteString(".nh\n.ad l\n") // commands and names are not broken
	p.section("NAME")
	p.b.WriteString(roff(name) + " \\-\n") // apropos(1) looks for this dash
	p.text(short)
	return p
}

func (p *manText) bytes() []byte { return p.b.Bytes() }

func (p *manText) section(title string)    { p.macro("SH", title) }
func (p *manText) subsection(title string) { p.macro("SS", title) }

// macro calls a macro with one argument.
func (p *manText) macro(name, arg string) {
	fmt.Fprintf(&p.b, ".%s \"%s\"\n", name, strings.ReplaceAll(roff(arg), `"`, `\(dq`))
}

const textWidth = 78 // bytes of an input line: mandoc(1) asks for less than 80

// text is words that are filled into lines, with those beside them.
func (p *manText) text(s string) {
	line := ""
	for _, word := range strings.Fields(s) {
		word = roff(word)
		if line != "" && len(line)+1+len(word) > textWidth {
			p.b.WriteString(line + "\n")
			line = ""
		}
		switch {
		case line != "":
			line += " " + word
		case word[0] == '.': // no macro
			line = `\&` + word
		default:
			line = word
		}
	}
	if line != "" {
		p.b.WriteString(line + "\n")
	}
}

// item is a term and what it means.
func (p *manText) item(term, what string) {
	p.b.WriteString(".TP\n")
	p.macro("B", term)
	p.text(what)
}

// prose is paragraphs with empty lines between; lines that are indented stay as they are.
func (p *manText) prose(s string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		paragraph = strings.Trim(paragraph, "\n")
		lines := strings.Split(paragraph, "\n")
		if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "  ") }) {
			p.verbatim(paragraph)
			continue
		}
		if i > 0 {
			p.b.WriteString(".PP\n")
		}
		for _, l := range lines {
			p.text(l)
		}
	}
}

// verbatim keeps the lines and their indents.
func (p *manText) verbatim(s string) {
	if lines := strings.Split(strings.TrimSpace(p.b.String()), "\n"); !strings.HasPrefix(lines[len(lines)-1], ".S") {
		p.b.WriteString(".PP\n") // but not after a heading
	}
	p.b.WriteString(".nf\n")
	for l := range strings.SplitSeq(strings.Trim(s, "\n"), "\n") {
		if l = roff(l); strings.HasPrefix(l, ".") || l == "" {
			l = `\&` + l
		}
		p.b.WriteString(l + "\n")
	}
	p.b.WriteString(".fi\n")
}

// references names other pages.
func (p *manText) references(names []string) {
	for i, n := range names {
		name, section, _ := strings.Cut(n, "(")
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Fprintf(&p.b, ".BR %s (%s%s\n", roff(name), section, comma)
	}
}

// roff writes text so that roff shows just that, in ASCII (groff_char(7)).
func roff(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r == '\t':
			b.WriteByte(' ')
		case r < ' ' || r == 0x7f: // nothing that a terminal would obey
		case r > 0x7e:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
