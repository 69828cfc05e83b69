package config

import (
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
)

// maxName bounds a label in characters.
const maxName = 64

// NewTarget is a target block to be written.
type NewTarget struct {
	Name    string
	Class   string
	Head    []string  // comments in front of the attributes
	Body    []Line    // attributes and blocks
	Missing []Missing // what a person must still write, as comments at the end
}

// Line is an attribute, or a block that holds some.
type Line struct {
	Name    string
	Value   any    // string, int, []string or Expr; nil: a block
	Label   string // of a block
	Inside  []Line // of a block
	Comment string // why: after an attribute, before a block
}

// Expr is a value that stands as it is, such as a reference.
type Expr string

// Missing is something to be filled in: a sentence, and lines to go by.
type Missing struct {
	What string
	Like []Line
}

// String is the block in the canonical layout.
func (n NewTarget) String() string {
	var b strings.Builder
	b.WriteString("target " + strconv.Quote(n.Name) + " {\n")
	for _, c := range n.Head {
		comment(&b, "# "+c)
	}
	if n.Class != "" {
		b.WriteString("class = class." + n.Class + "\n")
	}
	for _, l := range n.Body {
		l.write(&b)
	}
	for _, m := range n.Missing {
		comment(&b, "# "+m.What)
		var like strings.Builder
		for _, l := range m.Like {
			l.write(&like)
		}
		for line := range strings.Lines(string(hclwrite.Format([]byte(like.String())))) {
			b.WriteString("#   " + line)
		}
	}
	b.WriteString("}\n")
	return string(hclwrite.Format([]byte(b.String())))
}

func (l Line) write(b *strings.Builder) {
	if l.Value != nil {
		b.WriteString(l.Name + " = " + written(l.Value))
		if l.Comment != "" {
			b.WriteString(" # " + inertComment(l.Comment))
		}
		b.WriteString("\n")
		return
	}
	if l.Comment != "" {
		comment(b, "# "+l.Comment)
	}
	b.WriteString(l.Name)
	if l.Label != "" {
		b.WriteString(" " + written(l.Label))
	}
	if len(l.Inside) == 0 {
		b.WriteString(" {}\n")
		return
	}
	b.WriteString(" {\n")
	for _, in := range l.Inside {
		in.write(b)
	}
	b.WriteString("}\n")
}

// written is a value as the file has it, so that nothing in it is a template.
func written(v any) string {
	var c cty.Value
	switch v := v.(type) {
	case Expr:
		return string(v)
	case int:
		c = cty.NumberIntVal(int64(v))
	case []string:
		var list []cty.Value
		for _, s := range v {
			list = append(list, cty.StringVal(s))
		}
		c = cty.TupleVal(list)
	default:
		s, _ := v.(string)
		c = cty.StringVal(s)
	}
	return string(hclwrite.TokensForValue(c).Bytes())
}

// comment writes words as comment lines that fit into 80 columns.
func comment(b *strings.Builder, text string) {
	const width = 78 // and the block's indent
	line := ""
	for _, word := range strings.Fields(inertComment(text)) {
		if line != "" && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	b.WriteString(line + "\n")
}

// inertComment is text that ends no comment and drives no terminal: it may come
// from a machine that nobody trusts.
func inertComment(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("\u061c\u200e\u200f\u2028\u2029\ufeff", r) {
			return '?'
		}
		return r
	}, clean(s))
}

// NameFrom makes a label of a host's name that no target, class or kernel of lab
// has yet.
func (a *Adder) NameFrom(hostnames ...string) string {
	base := ""
	for _, h := range hostnames {
		if base = identifierOf(h); base != "" {
			break
		}
	}
	if base == "" {
		base = "target"
	}
	for i := 1; ; i++ {
		name := base
		if i > 1 {
			n := "_" + strconv.Itoa(i)
			name = base[:min(len(base), maxName-len(n))] + n
		}
		if a.Taken(name) == nil && name != controller {
			return name
		}
	}
}

// Taken is the place of the target that has a name already, nil when it is free.
func (a *Adder) Taken(name string) *Pos {
	if b := a.l.decl["target"][name]; b != nil {
		return &b.pos
	}
	return nil
}

// ValidName says whether a target may be called so.
func ValidName(name string) bool {
	return hclsyntax.ValidIdentifier(name) && len(name) <= maxName && name != controller
}

// identifierOf turns a host's name into an identifier, "" when nothing is left.
func identifierOf(host string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return -1
	}, host)
	name = strings.ReplaceAll(strings.Trim(name, "-_"), "-", "_")
	if name == "" || name == "localhost" || name == "none" {
		return ""
	}
	if name[0] >= '0' && name[0] <= '9' {
		name = "t" + name
	}
	return name[:min(len(name), maxName)]
}
