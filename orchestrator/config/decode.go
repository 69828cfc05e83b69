package config

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/zclconf/go-cty/cty"
)

// field is a tagged field of a struct that a block is decoded into.
type field struct {
	name     string
	optional bool
	block    bool
	path     bool // a file of the controller: made absolute
	doc      string
	ref      string // kind of block that a reference must name
	index    []int
	typ      reflect.Type
}

// fieldsOf lists the tagged fields of a struct type, those of embedded structs
// included. The tags are `hcl:"NAME"` (required), `hcl:"NAME,optional"`,
// `hcl:"NAME,optional,path"` and `hcl:"NAME,block"`.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("hcl")
		if !ok || !f.IsExported() {
			continue
		}
		opts := strings.Split(tag, ",")
		ref := f.Tag.Get("ref")
		if opts[0] == "peer" { // the one reference in a struct of another package
			ref = "target"
		}
		list = append(list, field{
			name: opts[0], optional: contains(opts[1:], "optional"), block: contains(opts[1:], "block"),
			path: contains(opts[1:], "path"), doc: f.Tag.Get("doc"), ref: ref, index: f.Index, typ: f.Type,
		})
	}
	return list
}

// target of a decoding: a field of one of the structs.
type destination struct {
	field
	to reflect.Value
}

// decode fills the structs that dsts point to from b's body. Each attribute must
// exist in one of them, or in several. partial leaves required attributes alone:
// a class need not be complete. It reports whether everything was right.
func (l *loader) decode(b *block, in *body, where string, partial bool, dsts ...any) bool {
	fields := map[string][]destination{}
	var attrNames, blockKinds []string
	for _, d := range dsts {
		v := reflect.ValueOf(d).Elem()
		for _, f := range fieldsOf(v.Type()) {
			if f.block {
				blockKinds = append(blockKinds, f.name)
			} else {
				attrNames = append(attrNames, f.name)
			}
			fields[f.name] = append(fields[f.name], destination{f, v.FieldByIndex(f.index)})
		}
	}
	ok, meant := true, map[string]bool{} // names that misspelt ones stand for
	for _, a := range in.sortedAttrs() {
		to := fields[a.name]
		if len(to) == 0 || to[0].block {
			ok = false
			if len(to) > 0 {
				l.err(a.pos, fmt.Sprintf("write %s { … }", a.name), "%q is a block, not an attribute", a.name)
				continue
			}
			meant[nearest(a.name, attrNames)] = true
			l.unknownAttr(a, b.kind, where, orElse(a.name, attrNames, blockKinds))
			l.lintNumbers(a.expr)
			l.value1(a)
			continue
		}
		for _, d := range to {
			ok = l.setAttr(a, d) && ok
		}
	}
	ok = l.decodeBlocks(b, in, where, partial, fields, attrNames, blockKinds) && ok
	for name, to := range fields {
		if f := to[0]; !partial && !f.optional && !f.block && in.attrs[name] == nil && !meant[name] {
			l.err(b.pos, f.doc, "%s needs the attribute %q", strings.TrimPrefix(where, "in "), name)
			ok = false
		}
	}
	return ok
}

// orElse is valid, and more where name is near none of valid.
func orElse(name string, valid, more []string) []string {
	if nearest(name, valid) != "" {
		return valid
	}
	return slices.Concat(valid, more)
}

// value1 evaluates an attribute with everything in scope.
func (l *loader) value1(a *attr) (cty.Value, bool) {
	ctx := l.eval.root
	if l.eval.full != nil {
		ctx = l.eval.full
	}
	return l.eval.value(a, ctx)
}

// decodeBlocks fills the block fields.
func (l *loader) decodeBlocks(b *block, in *body, where string, partial bool, fields map[string][]destination, attrNames, kinds []string) bool {
	ok := true
	first := map[string]*block{}
	for _, inner := range in.blocks {
		to := fields[inner.kind]
		if len(to) == 0 || !to[0].block {
			ok = false
			if contains(attrNames, inner.kind) {
				l.err(inner.pos, fmt.Sprintf("write %s = …", inner.kind), "%q is an attribute, not a block", inner.kind)
				continue
			}
			l.unknown(inner.pos, "block", inner.kind, b.kind, where, orElse(inner.kind, kinds, attrNames))
			l.lintBody(inner.body)
			continue
		}
		if to[0].typ != reflect.TypeOf([]*block(nil)) && first[inner.kind] != nil {
			l.err(inner.pos, fmt.Sprintf("the first is at %s", first[inner.kind].pos), "%s may hold only one %s block", strings.TrimPrefix(where, "in "), inner.kind)
			ok = false
			continue
		}
		first[inner.kind] = inner
		for _, d := range to {
			ok = l.setBlock(inner, d, where, partial) && ok
		}
	}
	return ok
}

func (l *loader) setBlock(inner *block, d destination, where string, partial bool) bool {
	if d.typ == reflect.TypeOf([]*block(nil)) {
		d.to.Set(reflect.Append(d.to, reflect.ValueOf(inner)))
		return true
	}
	if !l.labels(inner, 0) {
		return false
	}
	ptr := reflect.New(d.typ)
	ptr.Elem().Set(d.to)
	ok := l.decode(inner, inner.body, inBlock(inner.kind), partial, ptr.Interface())
	d.to.Set(ptr.Elem())
	return ok && (partial || l.check(inner.pos, inner.body, ptr.Interface()))
}

// check asks a decoded struct whether it makes sense, and whether it has a
// warning for whoever leaves the lab. An error that begins with the name of an
// attribute stands where its value does.
func (l *loader) check(p Pos, in *body, v any) bool {
	if c, ok := v.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			for _, e := range joined(err) {
				l.err(in.at(e.Error(), p), "", "%v", e)
			}
			return false
		}
	}
	if w, ok := v.(interface{ Warning() string }); ok && w.Warning() != "" {
		l.warn(p, "", "%s", w.Warning())
	}
	return true
}

// joined takes apart what errors.Join made.
func joined(err error) []error {
	j, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var list []error
	for _, e := range j.Unwrap() {
		list = append(list, joined(e)...)
	}
	return list
}

// at is the place of the attribute whose name is text's first word, else p.
func (b *body) at(text string, p Pos) Pos {
	name, _, _ := strings.Cut(text, " ")
	if a := b.attrs[strings.TrimRight(name, ",:")]; a != nil {
		return a.valuePos()
	}
	return p
}

// setAttr converts an attribute's value to the type of a field, strictly: no
// number becomes text, no text becomes a number.
func (l *loader) setAttr(a *attr, d destination) bool {
	if d.typ == reflect.TypeOf((*attr)(nil)) {
		d.to.Set(reflect.ValueOf(a))
		return true
	}
	v, ok := l.value1(a)
	if !ok {
		return false
	}
	if v.IsNull() {
		if !d.optional {
			l.value(a.valuePos(), "null is as if it were not there: write a value", "%q must have a value", a.name)
		}
		return d.optional
	}
	c := converter{l: l, attr: a, field: d.field}
	ok = c.set(d.to, v, a.expr)
	if k := d.typ.Kind(); k != reflect.Int && k != reflect.Int64 && k != reflect.Float64 {
		l.lintNumbers(a.expr)
	}
	if !ok {
		return false
	}
	return l.secret(a)
}

// attributes of a kind of block, for messages.
func names(t reflect.Type) []string {
	var list []string
	for _, f := range fieldsOf(t) {
		list = append(list, f.name)
	}
	sort.Strings(list)
	return list
}
