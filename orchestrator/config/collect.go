package config

import (
	"fmt"
	"sort"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"kernsweep/orchestrator/plural"
)

// topKinds are the blocks a file may hold, with their number of labels.
func topKinds() map[string]int {
	return map[string]int{
		"class": 1, "target": 1, "kernel": 1, "workload": 2, "sweep": 1, "locals": 0, "variable": 1,
	}
}

// otherWords are names that people use for our blocks.
func otherWords() map[string]string {
	return map[string]string{
		"variant": "kernel", "image": "kernel", "board": "target", "dut": "target", "host": "target", "node": "target",
		"machine": "target", "test": "workload", "benchmark": "workload", "job": "workload", "run": "sweep",
		"template": "class", "local": "locals", "var": "variable", "variables": "variable",
	}
}

// collect takes the top-level blocks of all files, refusing unknown and
// duplicate ones.
func (l *loader) collect() {
	for _, h := range l.bodies {
		for _, a := range newBody(h).sortedAttrs() {
			if n, ok := topKinds()[a.name]; ok {
				l.err(a.pos, "write "+a.name+strings.Repeat(" \"NAME\"", n)+" { … }", "%q is a block, not an attribute", a.name)
			} else {
				l.unknownAttr(a, "", "at the top of a file", keys(topKinds()))
			}
			l.lintNumbers(a.expr)
		}
		for _, in := range h.Blocks {
			l.collectBlock(newBlock(in))
		}
	}
}

func (l *loader) collectBlock(b *block) {
	labels, ok := topKinds()[b.kind]
	if !ok {
		l.unknownTop(b)
		return
	}
	if !l.labels(b, labels) {
		return
	}
	if b.kind != "locals" {
		m := l.decl[b.kind]
		if m == nil {
			m = map[string]*block{}
			l.decl[b.kind] = m
		}
		name := strings.Join(b.labels, ".")
		if first := m[name]; first != nil {
			l.err(b.pos, fmt.Sprintf("the first is at %s", first.pos), "%s %q exists already", b.kind, name)
			return
		}
		m[name] = b
	}
	l.top = append(l.top, b)
}

// of lists the blocks of a kind in the order of the files.
func (l *loader) of(kind string) []*block {
	var list []*block
	for _, b := range l.top {
		if b.kind == kind {
			list = append(list, b)
		}
	}
	return list
}

// labels checks the number and form of a block's labels.
func (l *loader) labels(b *block, want int) bool {
	if len(b.labels) != want {
		l.err(b.pos, fmt.Sprintf("it has %d; write %s%s { … }", len(b.labels), b.kind, strings.Repeat(" \"NAME\"", want)),
			"%s needs %s", aBlock(b.kind), plural.Of(want, "label"))
		return false
	}
	ok := true
	for i, s := range b.labels {
		ok = l.identifier(b.labelPos[i], s) && ok
	}
	return ok
}

// identifier checks a name: it ends up in paths and references.
func (l *loader) identifier(p Pos, s string) bool {
	switch {
	case !hclsyntax.ValidIdentifier(s):
		l.err(p, "letters, digits, _ and -, beginning with a letter", "%q is not usable as a name", s)
	case len(s) > 64:
		l.err(p, "", "the name is %d bytes long; at most 64 are allowed", len(s))
	default:
		return true
	}
	return false
}

// unknownTop reports a block that no file may hold. What stands in it is
// checked as far as its meaning can be guessed.
func (l *loader) unknownTop(b *block) {
	kinds := keys(topKinds())
	guess := otherWords()[b.kind]
	if guess == "" {
		guess = nearest(b.kind, kinds)
	}
	if guess == "" {
		l.err(b.pos, "valid here: "+strings.Join(kinds, ", "), "unknown block %q", b.kind)
		l.lintBody(b.body)
		return
	}
	l.lintBody(b.body)
	// A word of another product, holding what fits no such block of ours: one
	// mistake, told once.
	once, told := "", false
	if otherWords()[b.kind] != "" {
		once = fmt.Sprintf("; there is no block %q, did you mean %q?", b.kind, guess)
	}
	valid := l.validIn(guess)
	for _, a := range b.body.sortedAttrs() {
		// Drivers have so many attributes that one more of the same name says little.
		if places := l.placesOf(a.name); len(valid) > 0 && !contains(valid, a.name) && len(places) > 0 && !onlyDrivers(places) {
			l.err(a.pos, "it belongs in "+placeText(places)+once, "%q does not belong in %s", a.name, aBlock(b.kind))
			told = once != ""
		}
	}
	if !told {
		l.err(b.pos, fmt.Sprintf("did you mean %q?", guess), "unknown block %q", b.kind)
	}
}

// lintBody looks for numbers that would lose their spelling in a block whose
// attributes have no known type.
func (l *loader) lintBody(b *body) {
	for _, a := range b.attrs {
		l.lintNumbers(a.expr)
	}
	for _, in := range b.blocks {
		l.lintBody(in.body)
	}
}

// unknownAttr reports an attribute that does not exist in its block.
func (l *loader) unknownAttr(a *attr, kind, where string, valid []string) {
	l.unknown(a.pos, "attribute", a.name, kind, where, valid)
}

func (l *loader) unknown(p Pos, what, name, kind, where string, valid []string) {
	in, near := strings.TrimPrefix(where, "in "), nearest(name, valid)
	if contains(valid, name+"_env") {
		use := name + "_env"
		if contains(valid, name+"_file") {
			use += " or " + name + "_file"
		}
		l.err(p, fmt.Sprintf("use %s: a secret must not stand in the configuration", use), "%q does not belong in %s", name, in)
		return
	}
	if places := l.placesOf(name); kind != "" && len(places) > 0 && (near == "" || !onlyDrivers(places)) {
		l.err(p, "it belongs in "+placeText(places), "%q does not belong in %s", name, in)
		return
	}
	detail := ""
	if near != "" {
		detail = fmt.Sprintf("did you mean %q?", near)
	} else if len(valid) > 0 {
		detail = "valid here: " + strings.Join(valid, ", ")
	}
	l.err(p, detail, "unknown %s %q %s", what, name, where)
}

// onlyDrivers says that an attribute exists in drivers and workload kinds alone,
// whose names are many: a near name here is more likely then.
func onlyDrivers(places []string) bool {
	for _, p := range places {
		if !strings.Contains(p, "\"") {
			return false
		}
	}
	return true
}

// placeText names where an attribute belongs.
func placeText(places []string) string {
	if contains(places, "target") {
		return "a target block"
	}
	if len(places) > 3 {
		places = blockKinds(places)
	}
	return strings.Join(places, " or ")
}

// blockKinds names the kinds of block alone, each once: many drivers have an
// attribute called so.
func blockKinds(places []string) []string {
	var kinds []string
	for _, p := range places {
		kind, _, _ := strings.Cut(p, " ")
		if k := aBlock(kind); !contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// nearest is the valid name that name most likely stands for, or "".
func nearest(name string, valid []string) string {
	best, at := 3, ""
	if len([]rune(name)) < 4 {
		best = 2
	}
	sorted := append([]string(nil), valid...)
	sort.Strings(sorted)
	for _, v := range sorted {
		d := levenshtein.Distance(name, v, nil)
		if swapped(name, v) {
			d = 1
		}
		if d < best && d < len(v) {
			best, at = d, v
		}
	}
	return at
}

// swapped says that two neighbouring letters of a stand the other way round in b.
func swapped(a, b string) bool {
	if len(a) != len(b) || a == b {
		return false
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func inBlock(kind string) string { return "in " + aBlock(kind) }

func aBlock(kind string) string {
	if strings.ContainsAny(kind[:1], "aeiou") || kind == "ssh" {
		return "an " + kind + " block"
	}
	return "a " + kind + " block"
}
