package config

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// ref is what a reference such as kernel.cfs evaluates to.
type ref struct{ kind, name string }

// rangeOf is a place in the source.
type rangeOf = hcl.Range

// maxLocals bounds a chain of locals, and maxValue the text one may hold in
// bytes: doubling forty times would fill any memory.
const (
	maxLocals = 200
	maxValue  = 1 << 20
)

// evaluator computes values of expressions.
type evaluator struct {
	l       *loader
	refType cty.Type
	root    *hcl.EvalContext // references, variables, functions
	full    *hcl.EvalContext // the same with all locals
	locals  map[string]*attr
	vars    map[string]cty.Value
	early   bool     // variables are being read; they cannot use locals or each other
	path    []string // locals under evaluation
	inCycle map[string]bool
}

func newEvaluator(l *loader) *evaluator {
	e := &evaluator{
		l: l, refType: cty.Capsule("reference", reflect.TypeOf(ref{})),
		locals: map[string]*attr{}, vars: map[string]cty.Value{}, inCycle: map[string]bool{},
	}
	e.root = &hcl.EvalContext{Variables: map[string]cty.Value{}, Functions: l.meter.meters()}
	for name, f := range l.functions() {
		e.root.Functions[name] = l.meter.metered(name, f)
	}
	for _, kind := range []string{"kernel", "class", "target"} {
		m := map[string]cty.Value{}
		for name := range l.decl[kind] {
			m[name] = e.ref(kind, name)
		}
		e.root.Variables[kind] = cty.ObjectVal(m)
	}
	kinds := map[string]map[string]cty.Value{}
	for id, b := range l.decl["workload"] {
		if kinds[b.labels[0]] == nil {
			kinds[b.labels[0]] = map[string]cty.Value{}
		}
		kinds[b.labels[0]][b.name()] = e.ref("workload", id)
	}
	m := map[string]cty.Value{}
	for kind, names := range kinds {
		m[kind] = cty.ObjectVal(names)
	}
	e.root.Variables["workload"] = cty.ObjectVal(m)
	l.eval, e.early = e, true
	e.variables()
	e.root.Variables["var"] = cty.ObjectVal(e.vars)
	e.early = false
	e.allLocals()
	return e
}

func (e *evaluator) ref(kind, name string) cty.Value {
	return cty.CapsuleVal(e.refType, &ref{kind, name})
}

// variables takes the value of each variable: --var, the environment, default.
func (e *evaluator) variables() {
	for _, b := range e.l.of("variable") {
		name := b.name()
		e.vars[name] = cty.DynamicVal
		var v variableBlock
		if e.l.decode(b, b.body, inBlock("variable"), false, &v) {
			e.vars[name] = e.variable(b, v.Default)
		}
	}
	var given []string
	for name := range e.l.vars {
		given = append(given, name)
	}
	sort.Strings(given)
	for _, name := range given {
		if e.l.decl["variable"][name] == nil {
			e.l.err(Pos{File: "--var " + name}, didYouMean(name, keys(e.l.decl["variable"]), "declare it: variable \""+name+"\" {}"),
				"no such variable")
		}
	}
}

// variableBlock is a variable block.
type variableBlock struct {
	Default     *attr  `hcl:"default,optional" doc:"value when neither --var NAME=VALUE nor KERNSWEEP_VAR_NAME is given; its type decides how they are read"`
	Description string `hcl:"description,optional" doc:"what it is for"`
}

func (e *evaluator) variable(b *block, def *attr) cty.Value {
	name := b.name()
	want := cty.String
	val := cty.NilVal
	if def != nil {
		e.l.lintNumbers(def.expr)
		v, ok := e.value(def, e.root)
		if !ok {
			return cty.DynamicVal
		}
		want, val = v.Type(), v
		e.l.secret(&attr{name: name, expr: def.expr, val: v})
	}
	from := Pos{File: "--var " + name}
	text, given := e.l.vars[name]
	if !given {
		from = Pos{File: "KERNSWEEP_VAR_" + name}
		text, given = e.l.env("KERNSWEEP_VAR_" + name)
	}
	switch {
	case !given && def == nil:
		e.l.err(b.pos, fmt.Sprintf("give --var %s=VALUE, set KERNSWEEP_VAR_%s, or write a default", name, name), "variable %q has no value", name)
		return cty.DynamicVal
	case !given:
		return val
	case !want.IsPrimitiveType():
		e.l.err(from, "only text, numbers and true or false can be given from outside", "the default of variable %q is a list or a map", name)
		return cty.DynamicVal
	}
	v, err := convert.Convert(cty.StringVal(text), want)
	if err != nil {
		e.l.err(from, fmt.Sprintf("its default is at %s", b.pos), "variable %q needs a %s", name, want.FriendlyName())
		return cty.DynamicVal
	}
	return v
}

// allLocals evaluates every local after those it uses.
func (e *evaluator) allLocals() {
	var order []*attr
	for _, b := range e.l.of("locals") {
		for _, in := range b.body.blocks {
			e.l.err(in.pos, "a local is written name = value", "a locals block holds no %q block", in.kind)
		}
		for _, a := range b.body.sortedAttrs() {
			if first := e.locals[a.name]; first != nil {
				e.l.err(a.pos, fmt.Sprintf("the first is at %s", first.pos), "local %q exists already", a.name)
				continue
			}
			e.locals[a.name] = a
			order = append(order, a)
		}
	}
	all := map[string]cty.Value{}
	for _, a := range order {
		e.l.lintNumbers(a.expr)
		all[a.name] = e.local(a)
		if a.ok {
			e.l.secret(a)
		}
	}
	e.full = e.root.NewChild()
	e.full.Variables = map[string]cty.Value{"local": cty.ObjectVal(all)}
}

// local is the value of a local, unknown after an error.
func (e *evaluator) local(a *attr) cty.Value {
	if a.done {
		return a.val
	}
	for i, name := range e.path {
		if name == a.name {
			e.cycle(append(append([]string(nil), e.path[i:]...), a.name))
			return cty.DynamicVal
		}
	}
	if len(e.path) > maxLocals {
		e.l.err(a.pos, "write the value of one of them down", "locals refer to each other more than %d deep", maxLocals)
		return cty.DynamicVal
	}
	e.path = append(e.path, a.name)
	used := map[string]cty.Value{}
	for _, t := range a.expr.Variables() {
		if t.RootName() == "local" && len(t) > 1 {
			if other := e.locals[stepName(t[1])]; other != nil {
				used[other.name] = e.local(other)
			}
		}
	}
	e.path = e.path[:len(e.path)-1]
	ctx := e.root.NewChild()
	ctx.Variables = map[string]cty.Value{"local": cty.ObjectVal(used)}
	v, ok := e.value(a, ctx)
	if !ok {
		return cty.DynamicVal
	}
	return v
}

// cycle reports a circle of locals once, from its first local in the file.
func (e *evaluator) cycle(path []string) {
	if e.inCycle[path[0]] {
		return
	}
	var where []string
	for _, name := range path[:len(path)-1] {
		e.inCycle[name] = true
		where = append(where, fmt.Sprintf("%s at %s", name, e.locals[name].pos))
	}
	e.l.err(e.locals[path[0]].pos, strings.Join(where, ", "), "locals refer to each other in a circle: %s", strings.Join(path, " -> "))
}

// value evaluates an attribute once. ok is false when it has no value, which
// has been reported then.
func (e *evaluator) value(a *attr, ctx *hcl.EvalContext) (cty.Value, bool) {
	if a.done {
		return a.val, a.ok
	}
	a.done, a.val = true, cty.DynamicVal
	if e.l.meter.spent() {
		return a.val, false
	}
	for _, t := range a.expr.Variables() {
		if !e.reference(t) {
			return a.val, false
		}
	}
	v, diags := a.expr.Value(ctx)
	if e.l.meter.spent() {
		e.l.value(a.valuePos(), "write the result down instead, or read it by file(\"…\")", "the configuration takes too long to compute")
		return a.val, false
	}
	if n, _, _ := extent(v); n > maxNodes {
		e.l.value(a.valuePos(), "write less, or use it in smaller parts", "the value holds more than %d elements", maxNodes)
		return a.val, false
	}
	e.l.hclDiags(diags)
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return a.val, false
	}
	v, _ = v.UnmarkDeep()
	if !e.l.checkText(a, v) {
		return a.val, false
	}
	a.val, a.ok = v, true
	return v, true
}
