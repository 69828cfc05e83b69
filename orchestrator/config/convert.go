package config

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Ref is a decoded reference to a block.
type Ref struct {
	Name string // KIND.NAME for a workload
	Pos  Pos
}

// converter sets a field from an attribute's value.
type converter struct {
	l     *loader
	attr  *attr
	field field
}

func (c converter) set(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	switch to.Interface().(type) {
	case time.Duration:
		return c.duration(to, v, e)
	case Ref:
		return c.reference(to, v, e)
	case blocks:
		return c.blocks(to, v, e)
	case percent:
		return c.percent(to, v, e)
	}
	switch to.Kind() {
	case reflect.String:
		return c.text(to, v, e)
	case reflect.Bool:
		if v.Type() != cty.Bool {
			return c.wrong(e, v, "true or false, without quotes")
		}
		to.SetBool(v.True())
		return true
	case reflect.Int, reflect.Int64:
		return c.integer(to, v, e)
	case reflect.Float64:
		if v.Type() != cty.Number {
			return c.wrong(e, v, "a number, without quotes")
		}
		f, _ := v.AsBigFloat().Float64()
		if math.IsInf(f, 0) {
			return c.wrong(e, v, "a smaller number")
		}
		to.SetFloat(f)
		return true
	case reflect.Slice:
		return c.list(to, v, e)
	case reflect.Map:
		return c.table(to, v, e)
	}
	panic(fmt.Sprintf("config: field of attribute %q has the type %s, which no value can be decoded into", c.field.name, to.Type()))
}

// wrong says what an attribute takes, and never what was written there.
func (c converter) wrong(e hclsyntax.Expression, v cty.Value, want string) bool {
	c.l.value(posOf(e.Range()), "", "%q takes %s; this is %s", c.attr.name, want, c.kind(v))
	return false
}

func (c converter) kind(v cty.Value) string {
	t := v.Type()
	switch {
	case t == cty.String:
		return "text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case v.IsNull():
		return "null"
	case t == c.l.eval.refType:
		return "a reference to a " + v.EncapsulatedValue().(*ref).kind
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	default:
		return "a map"
	}
}

func (c converter) text(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	switch {
	case v.Type() == cty.Number:
		c.l.value(posOf(e.Range()), fmt.Sprintf("%q is text, and a number would lose its spelling", c.attr.name),
			"a number where text is wanted: put it in quotes")
		if c.l.loose {
			to.SetString(v.AsBigFloat().Text('f', -1))
		}
		return false
	case v.Type() == c.l.eval.refType && c.field.ref != "":
		r := v.EncapsulatedValue().(*ref)
		if r.kind != c.field.ref {
			return c.wrong(e, v, "a reference to a "+c.field.ref)
		}
		to.SetString(r.name)
		return true
	case v.Type() != cty.String:
		return c.wrong(e, v, "text in quotes")
	}
	s := v.AsString()
	if c.field.path {
		s = c.l.absolute(s)
	}
	to.SetString(s)
	return true
}

func (c converter) integer(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	if v.Type() != cty.Number {
		return c.wrong(e, v, "a whole number, without quotes")
	}
	n, acc := v.AsBigFloat().Int64()
	if acc != big.Exact || to.OverflowInt(n) {
		return c.wrong(e, v, "a whole number of ordinary size")
	}
	to.SetInt(n)
	return true
}

func (c converter) duration(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	p := posOf(e.Range())
	if v.Type() == cty.Number {
		example := "45s"
		if src := c.l.text(e.Range()); plainNumber.MatchString(src) {
			example = src + "s"
		}
		c.l.value(p, "", "%q needs a unit, write %q", c.attr.name, example)
		return false
	}
	if v.Type() != cty.String {
		return c.wrong(e, v, `a duration such as "45s"`)
	}
	s := v.AsString()
	d, err := time.ParseDuration(s)
	switch {
	case s == "0" || err != nil && strings.Trim(s, "0123456789.") == "" && s != "":
		c.l.value(p, "units are ms, s, m, h", "%q needs a unit, write %q", c.attr.name, s+"s")
	case err != nil:
		c.l.value(p, `write a number and a unit, such as "400ms", "45s", "1h30m"`, "%q is no duration", c.attr.name)
	case d < 0:
		c.l.value(p, "", "%q must not be negative", c.attr.name)
	default:
		to.SetInt(int64(d))
		return true
	}
	return false
}

func (c converter) reference(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	want := c.field.ref + "." + "NAME"
	if c.field.ref == "workload" {
		want = "workload.KIND.NAME"
	}
	if v.Type() == c.l.eval.refType {
		if r := v.EncapsulatedValue().(*ref); r.kind == c.field.ref {
			to.Set(reflect.ValueOf(Ref{Name: r.name, Pos: posOf(e.Range())}))
			return true
		}
	}
	return c.wrong(e, v, "a reference, written "+want+" without quotes")
}

func (c converter) list(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	if t := v.Type(); !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		return c.wrong(e, v, "a list in [ ]")
	}
	ok, i := true, 0
	out := reflect.MakeSlice(to.Type(), 0, v.LengthInt())
	for it := v.ElementIterator(); it.Next(); i++ {
		_, x := it.Element()
		at := element(e, i)
		if x.IsNull() {
			c.l.value(posOf(at.Range()), "take it out, or write a value", "%q holds a null", c.attr.name)
			ok = false
			continue
		}
		item := reflect.New(to.Type().Elem()).Elem()
		if c.set(item, x, at) {
			out = reflect.Append(out, item)
		} else {
			ok = false
		}
	}
	to.Set(out)
	return ok
}

func (c converter) table(to reflect.Value, v cty.Value, e hclsyntax.Expression) bool {
	if t := v.Type(); !t.IsObjectType() && !t.IsMapType() {
		return c.wrong(e, v, "a map in { }")
	}
	ok := true
	out := reflect.MakeMap(to.Type())
	for it := v.ElementIterator(); it.Next(); {
		k, x := it.Element()
		at := entry(e, k.AsString())
		if x.IsNull() {
			c.l.value(posOf(at.Range()), "take it out, or write a value", "%q holds a null", c.attr.name)
			ok = false
			continue
		}
		item := reflect.New(to.Type().Elem()).Elem()
		if c.set(item, x, at) {
			out.SetMapIndex(reflect.ValueOf(k.AsString()).Convert(to.Type().Key()), item)
		} else {
			ok = false
		}
	}
	to.Set(out)
	return ok
}

// element is the expression of a list's element, or the whole.
func element(e hclsyntax.Expression, i int) hclsyntax.Expression {
	if t, ok := unwrap(e).(*hclsyntax.TupleConsExpr); ok && i < len(t.Exprs) {
		return t.Exprs[i]
	}
	return e
}

// entry is the expression of a map's value, or the whole.
func entry(e hclsyntax.Expression, key string) hclsyntax.Expression {
	o, ok := unwrap(e).(*hclsyntax.ObjectConsExpr)
	if !ok {
		return e
	}
	for _, item := range o.Items {
		if k, diags := item.KeyExpr.Value(nil); !diags.HasErrors() && k.Type() == cty.String && k.IsKnown() && !k.IsNull() && k.AsString() == key {
			return item.ValueExpr
		}
	}
	return e
}

func unwrap(e hclsyntax.Expression) hclsyntax.Expression {
	for {
		p, ok := e.(*hclsyntax.ParenthesesExpr)
		if !ok {
			return e
		}
		e = p.Expression
	}
}

// literal says that e is written out: no reference, no function.
func literal(e hclsyntax.Expression) bool {
	is := true
	_ = hclsyntax.VisitAll(e, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n.(type) {
		case *hclsyntax.FunctionCallExpr, *hclsyntax.ScopeTraversalExpr:
			is = false
		}
		return nil
	})
	return is
}

// secret refuses a password written out: the configuration is copied into run
// directories. A value from env() or file() is fine.
func (l *loader) secret(a *attr) bool {
	if !literal(a.expr) || a.val.Type() != cty.String || a.val.IsNull() || a.val.AsString() == "" {
		return true
	}
	if secretName(a.name) {
		l.value(a.valuePos(), "use an attribute that ends in _env or _file where there is one, else env(\"NAME\") or file(\"…\")",
			"a secret must not stand in the configuration, which is copied into every run")
		return false
	}
	if _, rest, ok := strings.Cut(a.val.AsString(), "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if user, _, ok := strings.Cut(host, "@"); ok && strings.Contains(user, ":") {
			l.value(a.valuePos(), "take it from the environment: \"http://user:${env(\"NAME\")}@…\"",
				"a password must not stand in an address in the configuration, which is copied into every run")
			return false
		}
	}
	return true
}
