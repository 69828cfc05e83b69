package config

import (
	"sort"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"kernsweep/orchestrator/notify"
	"kernsweep/targets"
	"kernsweep/targets/boot"
	"kernsweep/targets/console"
	"kernsweep/targets/power"
	"kernsweep/targets/qemu"
	"kernsweep/workloads"
)

// drivers are the tables that labels of driver and workload blocks name.
type drivers struct {
	boot      map[string]func() targets.Booter
	power     map[string]func() targets.Power
	console   map[string]func() targets.Console
	workloads map[string]func() workloads.Workload
	notify    map[string]func() notify.Driver
}

// Load reads path, a file or a directory whose *.hcl files are taken together,
// and decodes it. vars are the values of `--var`; env looks up environment
// variables (nil: none are set). The Lab is nil when the diagnostics hold an
// error. Nothing is contacted and nothing is written.
func Load(path string, vars map[string]string, env func(string) (string, bool)) (*Lab, Diagnostics) {
	return load(path, vars, env, allDrivers())
}

// allDrivers are the product's tables. A driver that fills several slots stands
// in its own folder.
func allDrivers() drivers {
	d := drivers{boot: boot.All(), power: power.All(), console: console.All(), workloads: workloads.All(), notify: notify.All()}
	d.boot["qemu"] = func() targets.Booter { return new(qemu.Machine) }
	return d
}

// loader is the state of one Load.
type loader struct {
	*findings
	drivers drivers
	vars    map[string]string
	env     func(string) (string, bool)
	dir     string
	src     map[string][]byte // by the name positions carry
	raw     []rangeOf         // literals already reported for a control character
	bodies  []*hclsyntax.Body
	meter   meter
	broken  bool // a file could not be read whole, so what it declares is unknown
	lab     *Lab

	top     []*block
	decl    map[string]map[string]*block // kind -> name -> block; workloads by KIND.NAME
	eval    *evaluator
	classes map[string]*body // merged, by name
	places  map[string][]string
	kinds   map[string][]string // see schema
	claims  []claim
	loose   bool              // numbers become text; see loosely
	instead map[string][]byte // what is read instead of a file, by its name
}

func load(path string, vars map[string]string, env func(string) (string, bool), d drivers) (*Lab, Diagnostics) {
	l, ds := loadAs(path, vars, env, d, nil)
	if ds.HasErrors() {
		return nil, ds
	}
	return l.lab, ds
}

// loadAs is load with other content for some files, and gives the whole state.
func loadAs(path string, vars map[string]string, env func(string) (string, bool), d drivers, instead map[string][]byte) (*loader, Diagnostics) {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	l := &loader{
		findings: newFindings(), drivers: d, vars: vars, env: env, instead: instead,
		src: map[string][]byte{}, meter: meter{left: maxWork}, lab: &Lab{Sources: map[string][]byte{}},
		decl: map[string]map[string]*block{}, classes: map[string]*body{},
	}
	if l.readAll(path) {
		l.lab.Dir = l.dir
		l.collect()
		newEvaluator(l)
		l.build()
	}
	return l, l.sorted()
}

// build decodes the blocks, classes first.
func (l *loader) build() {
	for _, b := range l.of("class") {
		l.class(b.name(), nil)
	}
	for _, b := range l.of("class") {
		if body := l.classes[b.name()]; body != nil {
			l.target(b, body, true)
		}
	}
	for _, b := range l.of("target") {
		l.addTarget(b)
	}
	for _, b := range l.of("kernel") {
		l.addKernel(b)
	}
	for _, b := range l.of("workload") {
		l.addWorkload(b)
	}
	for _, b := range l.of("sweep") {
		l.addSweep(b)
	}
	l.checkShared()
	l.checkPeers()
}

// block is a block of the files, in a form that can be merged.
type block struct {
	kind     string
	labels   []string
	pos      Pos
	labelPos []Pos
	body     *body
}

// name is the last label, or "".
func (b *block) name() string {
	if len(b.labels) == 0 {
		return ""
	}
	return b.labels[len(b.labels)-1]
}

// attr is an attribute; its value is computed once.
type attr struct {
	name string
	pos  Pos
	expr hclsyntax.Expression
	done bool
	ok   bool
	val  cty.Value
}

func (a *attr) valuePos() Pos { return posOf(a.expr.Range()) }

// body is the content of a block.
type body struct {
	attrs  map[string]*attr
	blocks []*block
}

func newBody(h *hclsyntax.Body) *body {
	b := &body{attrs: map[string]*attr{}}
	for name, a := range h.Attributes {
		b.attrs[name] = &attr{name: name, pos: posOf(a.NameRange), expr: a.Expr}
	}
	for _, in := range h.Blocks {
		b.blocks = append(b.blocks, newBlock(in))
	}
	return b
}

func newBlock(h *hclsyntax.Block) *block {
	b := &block{kind: h.Type, labels: h.Labels, pos: posOf(h.TypeRange), body: newBody(h.Body)}
	for _, r := range h.LabelRanges {
		b.labelPos = append(b.labelPos, posOf(r))
	}
	return b
}

// sortedAttrs are the attributes in the order of the file.
func (b *body) sortedAttrs() []*attr {
	list := make([]*attr, 0, len(b.attrs))
	for _, a := range b.attrs {
		list = append(list, a)
	}
	sort.Slice(list, func(i, j int) bool {
		p, q := list[i].pos, list[j].pos
		if p.Line != q.Line {
			return p.Line < q.Line
		}
		return p.Col < q.Col || p.Col == q.Col && list[i].name < list[j].name
	})
	return list
}

// merge lays child over parent: attribute by attribute, inner blocks of the same
// kind and labels likewise. A slot holds one driver, so another label replaces it.
func merge(parent, child *body) *body {
	m := &body{attrs: map[string]*attr{}}
	for n, a := range parent.attrs {
		m.attrs[n] = a
	}
	for n, a := range child.attrs {
		m.attrs[n] = a
	}
	for _, p := range parent.blocks {
		c := child.find(p.kind)
		switch {
		case c == nil:
			m.blocks = append(m.blocks, p)
		case c.name() == p.name():
			m.blocks = append(m.blocks, &block{kind: c.kind, labels: c.labels, pos: c.pos, labelPos: c.labelPos, body: merge(p.body, c.body)})
		default:
			m.blocks = append(m.blocks, c)
		}
	}
	for _, c := range child.blocks {
		if parent.find(c.kind) == nil {
			m.blocks = append(m.blocks, c)
		}
	}
	return m
}

// find is the first inner block of a kind, or nil.
func (b *body) find(kind string) *block {
	for _, in := range b.blocks {
		if in.kind == kind {
			return in
		}
	}
	return nil
}
