package config

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"kernsweep/targets"
)

// claim is what a target holds that no other target may hold.
type claim struct {
	target *Target
	login  string // host, port and jump hosts; "" = none
	at     Pos
	things []thing
}

// thing is a power outlet, a console or the like, as a block names it.
type thing struct {
	key   string // alike for alike
	what  string // for the message
	shown string // as written, without what is no literal; may be empty
	at    Pos
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
	c.things = append(c.things, claims(l, m.find("power"), "power outlet", l.drivers.power)...)
	c.things = append(c.things, claims(l, m.find("console"), "console", l.drivers.console)...)
	c.things = append(c.things, claims(l, m.find("boot"), "", l.drivers.boot)...)
	return c
}

// claims are the things that a driver block names. The driver says so itself,
// whatever mistakes its block holds otherwise: a number in the place of an
// outlet's name must not hide that two targets hang on it. Where the driver is
// silent, or there is none, two blocks of the same kind and values are the same
// thing; what is "" holds nothing then.
func claims[T any](l *loader, b *block, what string, table map[string]func() T) []thing {
	if b == nil {
		return nil
	}
	var list []thing
	if make := table[b.name()]; make != nil {
		driver := make()
		l.loosely(func() { l.decode(b, b.body, fmt.Sprintf("in a %s %q block", b.kind, b.name()), true, driver) })
		if o, ok := any(driver).(targets.Outlet); ok {
			if strip, outlet := o.Outlet(); strip != "" && outlet != "" {
				_, shown := values(l, b, table)
				list = append(list, thing{"outlet " + strip + "\x00" + outlet, "power outlet", shown, b.pos})
			}
			what = "" // it knows better than its values
		}
		if o, ok := any(driver).(targets.Owner); ok {
			for _, owned := range o.Owns() {
				list = append(list, thing{owned, owned, "", b.pos})
			}
			what = ""
		}
	}
	if what == "" || what == "console" && table[b.name()] == nil {
		return list
	}
	if key, shown := values(l, b, table); key != "" {
		list = append(list, thing{what + " " + key, what, shown, b.pos})
	}
	return list
}

// loosely decodes with numbers taken for the text of the same digits. What it
// finds wrong was found before.
func (l *loader) loosely(do func()) {
	l.loose = true
	do()
	l.loose = false
}

// values writes down kind and values of a driver block, a number and the same
// digits in quotes alike. How long to wait and who logs in do not name a thing.
func values[T any](l *loader, b *block, table map[string]func() T) (key, shown string) {
	skip := map[string]bool{}
	if make := table[b.name()]; make != nil {
		for _, f := range fieldsOf(reflect.TypeOf(make()).Elem()) {
			skip[f.name] = f.typ == reflect.TypeOf(time.Duration(0))
		}
	}
	var parts, words []string
	for name, a := range b.body.attrs {
		if skip[name] || strings.HasPrefix(name, "user") || secretName(name) || strings.HasSuffix(name, "_env") || strings.HasSuffix(name, "_file") {
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
	return b.name() + " " + strings.Join(parts, " "), strings.Join(words, ", ")
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

// checkShared refuses two targets that are one machine, or hold one thing.
func (l *loader) checkShared() {
	logins := map[string]claim{}
	type holder struct {
		target string
		at     Pos
	}
	held := map[string]holder{}
	for _, c := range l.claims {
		if first, ok := logins[c.login]; ok {
			l.err(c.at, fmt.Sprintf("the other is at %s", first.at),
				"targets %q and %q are the same machine: both log in to %s", first.target.Name, c.target.Name, c.login)
		} else if c.login != "" {
			logins[c.login] = c
		}
		for _, t := range c.things {
			first, ok := held[t.key]
			switch {
			case !ok:
				held[t.key] = holder{c.target.Name, t.at}
			case first.target != c.target.Name:
				what := t.what
				if t.shown != "" {
					what += " (" + t.shown + ")"
				}
				detail := fmt.Sprintf("%s claims it at %s, %s at %s", first.target, first.at, c.target.Name, t.at)
				if first.at == t.at {
					detail = fmt.Sprintf("both have it from here; write another into target %q at %s", c.target.Name, c.at)
				}
				l.err(t.at, detail, "targets %q and %q claim the same %s", first.target, c.target.Name, what)
			}
		}
	}
}
