package config

import (
	"fmt"
	"sort"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// reference checks a path such as kernel.cfs before it is evaluated, for the
// sake of the message.
func (e *evaluator) reference(t hcl.Traversal) bool {
	l, p := e.l, posOf(t.SourceRange())
	root := t.RootName()
	if e.early {
		l.value(p, "write the value itself", "a variable block cannot use %q: it is read before everything else", root)
		return false
	}
	switch root {
	case "local":
		return known(e, p, t, root, e.locals)
	case "var":
		return known(e, p, t, root, l.decl["variable"])
	case "kernel", "class", "target":
		if !known(e, p, t, root, l.decl[root]) {
			return false
		}
		if len(t) > 2 {
			l.value(p, "put the value into locals, and write local.NAME in both places", "%s.%s is a reference; nothing can be read from it", root, stepName(t[1]))
			return false
		}
		return true
	case "workload":
		return e.workload(p, t)
	}
	l.value(p, didYouMean(root, []string{"local", "var", "kernel", "class", "target", "workload"},
		"text stands in quotes, and what others shall replace is written $${"+root+"}; names are local.X, var.X, kernel.X, class.X, target.X, workload.KIND.X"), "nothing is called %q", root)
	return false
}

func known[V any](e *evaluator, p Pos, t hcl.Traversal, root string, names map[string]V) bool {
	name := ""
	switch {
	case len(t) > 1:
		name = stepName(t[1])
	case root != "local": // all of them, or one by a computed name: target[each]
		return true
	}
	if name == "" {
		e.l.value(p, "", "write %s.NAME", root)
		return false
	}
	if _, ok := names[name]; ok {
		return true
	}
	detail := fmt.Sprintf("declare it: %s %q { … }", noun(root), name)
	if root == "local" {
		detail = fmt.Sprintf("declare it: locals { %s = … }", name)
	}
	if near := nearest(name, keys(names)); near != "" {
		detail = fmt.Sprintf("did you mean %s.%s?", root, near)
	}
	e.l.value(p, detail, "%s.%s: no such %s", root, name, noun(root))
	return false
}

func noun(root string) string {
	if root == "var" {
		return "variable"
	}
	return root
}

func (e *evaluator) workload(p Pos, t hcl.Traversal) bool {
	if len(t) != 3 {
		e.l.value(p, "", "write workload.KIND.NAME")
		return false
	}
	id := stepName(t[1]) + "." + stepName(t[2])
	if e.l.decl["workload"][id] != nil {
		return true
	}
	detail := fmt.Sprintf("declare it: workload %q %q { … }", stepName(t[1]), stepName(t[2]))
	if near := nearest(id, keys(e.l.decl["workload"])); near != "" {
		detail = fmt.Sprintf("did you mean workload.%s?", near)
	}
	e.l.value(p, detail, "workload.%s: no such workload", id)
	return false
}

// stepName is the name after a dot or in brackets, "" if it is neither.
func stepName(s hcl.Traverser) string {
	switch s := s.(type) {
	case hcl.TraverseAttr:
		return s.Name
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString()
		}
	}
	return ""
}

// checkText refuses control characters and endless text in a value.
func (l *loader) checkText(a *attr, v cty.Value) bool {
	total, ok := 0, true
	_ = cty.Walk(v, func(path cty.Path, v cty.Value) (bool, error) {
		if n := len(path); n > 0 {
			if g, is := path[n-1].(cty.GetAttrStep); is {
				ok = l.checkRunes(a, g.Name) && ok
			}
			if g, is := path[n-1].(cty.IndexStep); is && g.Key.Type() == cty.String {
				ok = l.checkRunes(a, g.Key.AsString()) && ok
			}
		}
		if v.Type() == cty.String && !v.IsNull() {
			total += len(v.AsString())
			ok = l.checkRunes(a, v.AsString()) && ok
		}
		return true, nil
	})
	if total > maxValue {
		l.value(a.valuePos(), "write less, or use it in smaller parts", "the text is larger than %d MB", maxValue>>20)
		return false
	}
	return ok
}

func (l *loader) checkRunes(a *attr, s string) bool {
	for _, r := range s {
		if !badControl(r) {
			continue
		}
		for _, raw := range l.raw {
			if in := a.expr.Range(); in.Filename == raw.Filename && in.Start.Byte <= raw.Start.Byte && raw.End.Byte <= in.End.Byte {
				return false // reported at the very character
			}
		}
		l.control(a.valuePos(), r)
		return false
	}
	return true
}

func didYouMean(name string, valid []string, otherwise string) string {
	if near := nearest(name, valid); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

func keys[V any](m map[string]V) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}
