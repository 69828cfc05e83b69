package config

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// claim is what a target holds that no other target may hold.
type claim struct {
	target *Target
	login  string // host, port and jump hosts; "" = none
	at     Pos
	outlet string // the power block's values; "" = none
	shown  string // the same as written, without what is no literal
	power  Pos
}

func (l *loader) claim(b *block, m *body, t *Target) claim {
	c := claim{target: t, at: b.pos}
	if t.SSH.Host != "" {
		port := t.SSH.Port
		if port == 0 {
			port = 22
		}
		c.login = fmt.Sprintf("%s port %d", strings.ToLower(t.SSH.Host), port)
		if len(t.SSH.Via) > 0 {
			c.login += " via " + strings.Join(t.SSH.Via, ", ")
		}
	}
	if p := m.find("power"); p != nil {
		c.power = p.pos
		c.outlet, c.shown = l.outlet(p)
	}
	return c
}

// outlet writes down which outlet a power block names: kind and values, a
// number and the same digits in quotes alike. How long to wait and who logs in
// do not name an outlet.
func (l *loader) outlet(p *block) (key, shown string) {
	skip := map[string]bool{}
	if make := l.drivers.power[p.name()]; make != nil {
		for _, f := range fieldsOf(reflect.TypeOf(make()).Elem()) {
			skip[f.name] = f.typ == reflect.TypeOf(time.Duration(0))
		}
	}
	var parts, words []string
	for name, a := range p.body.attrs {
		if skip[name] || strings.HasPrefix(name, "user") || strings.HasPrefix(name, "password") {
			continue
		}
		v, ok := l.value1(a)
		if !ok {
			return "", ""
		}
		parts = append(parts, name+"="+plain(v))
		if literal(a.expr) && v.Type().IsPrimitiveType() && l.secret(a) {
			words = append(words, name+" = "+l.text(a.expr.Range()))
		}
	}
	sort.Strings(parts)
	sort.Strings(words)
	if len(parts) == 0 {
		return "", ""
	}
	return p.name() + " " + strings.Join(parts, " "), strings.Join(words, ", ")
}

// plain is a value as text, numbers like their digits.
func plain(v cty.Value) string {
	switch {
	case v.IsNull():
		return ""
	case v.Type() == cty.String:
		return strconv.Quote(v.AsString())
	case v.Type() == cty.Number:
		return strconv.Quote(v.AsBigFloat().Text('f', -1))
	case v.Type() == cty.Bool:
		return strconv.FormatBool(v.True())
	case v.CanIterateElements():
		var b strings.Builder
		for it := v.ElementIterator(); it.Next(); {
			k, x := it.Element()
			b.WriteString(plain(k) + ":" + plain(x) + ",")
		}
		return b.String()
	}
	return ""
}

// checkShared refuses two targets that are one machine, or hang on one outlet.
func (l *loader) checkShared() {
	logins, outlets := map[string]claim{}, map[string]claim{}
	for _, c := range l.claims {
		if first, ok := logins[c.login]; ok {
			l.err(c.at, fmt.Sprintf("the other is at %s", first.at),
				"targets %q and %q are the same machine: both log in to %s", first.target.Name, c.target.Name, c.login)
		} else if c.login != "" {
			logins[c.login] = c
		}
		if first, ok := outlets[c.outlet]; ok {
			l.err(c.power, fmt.Sprintf("%s claims it at %s, %s at %s", first.target.Name, first.power, c.target.Name, c.power),
				"targets %q and %q claim the same power outlet (%s)", first.target.Name, c.target.Name, c.shown)
		} else if c.outlet != "" {
			outlets[c.outlet] = c
		}
	}
}
