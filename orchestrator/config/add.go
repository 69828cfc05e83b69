package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Adder adds a target block to a configuration. Nothing but the block is
// changed: every other byte of every file stays.
type Adder struct {
	path  string
	vars  map[string]string
	env   func(string) (string, bool)
	l     *loader
	file  string // that the block goes into
	old   []byte // what the file held when it was read; nil: there was none
	fresh bool   // there is no configuration at all yet
}

// NewAdder reads the configuration that a target is to be added to. One that does
// not exist yet is empty. The Adder is nil when the diagnostics hold an error.
func NewAdder(path string, vars map[string]string, env func(string) (string, bool)) (*Adder, Diagnostics) {
	a := &Adder{path: path, vars: vars, env: env}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.file, a.fresh = path, true
	case err == nil && info.IsDir() && !holdsFiles(path):
		a.file, a.fresh = filepath.Join(path, "targets.hcl"), true
	}
	instead := map[string][]byte{}
	if a.fresh {
		instead[a.file] = nil
	}
	l, ds := loadAs(path, vars, env, allDrivers(), instead)
	if ds.HasErrors() {
		return nil, ds
	}
	a.l = l
	if !a.fresh {
		a.file = a.place(info.IsDir())
		a.old = l.src[a.file] // nil for a targets.hcl that is yet to be made
	}
	return a, ds
}

// holdsFiles says whether a folder has a file that would be read.
func holdsFiles(dir string) bool {
	names, _ := filepath.Glob(filepath.Join(dir, "*.hcl")) // the pattern is right
	return slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(filepath.Base(n), ".") })
}

// place is the file that holds the last target; without any target a folder gets
// a targets.hcl.
func (a *Adder) place(folder bool) string {
	list := a.l.of("target")
	switch {
	case len(list) > 0:
		return list[len(list)-1].pos.File
	case folder:
		return filepath.Join(a.path, "targets.hcl")
	}
	return a.path
}

// Lab is the configuration before anything is added.
func (a *Adder) Lab() *Lab { return a.l.lab }

// File is the file that the block goes into.
func (a *Adder) File() string { return a.file }

// Dir is where relative paths of the files start.
func (a *Adder) Dir() string { return a.l.dir }

// Class decodes a class as it stands, which need not be a whole target; nil when
// there is none of that name.
func (a *Adder) Class(name string) *Target {
	b := a.l.decl["class"][name]
	if b == nil || a.l.classes[name] == nil {
		return nil
	}
	return a.l.target(b, a.l.classes[name], true)
}

// Classes are the names of the classes, in the order of the files.
func (a *Adder) Classes() []string {
	var out []string
	for _, b := range a.l.of("class") {
		out = append(out, b.name())
	}
	return out
}

// At is the place of an attribute or block in the block of a target or in its
// classes, by its name, or by the names of a block and of an attribute in it; the
// target's own place when none of them says it.
func (a *Adder) At(target string, path ...string) Pos {
	b := a.l.decl["target"][target]
	if b == nil {
		return Pos{File: a.path}
	}
	p, in := b.pos, a.l.inherit(b, nil)
	for _, name := range path {
		if at := in.attrs[name]; at != nil {
			return at.pos
		}
		next := in.find(name)
		if next == nil {
			return p
		}
		p, in = next.pos, next.body
	}
	return p
}

// Addition is a block that was put in and found valid.
type Addition struct {
	Lab    *Lab    // with the target
	Target *Target // decoded
	File   string
	Text   string // of the block
	Line   int    // where it begins

	old, now []byte
	fresh    bool
}

// Add puts a block in, and loads the whole anew as it would be then. The
// Addition is nil when the diagnostics hold an error. Nothing is written.
func (a *Adder) Add(b NewTarget) (*Addition, Diagnostics) {
	text := b.String()
	now, at := insert(a.old, text)
	l, ds := loadAs(a.path, a.vars, a.env, allDrivers(), map[string][]byte{a.file: now})
	if ds.HasErrors() {
		return nil, ds
	}
	t := l.lab.Target(b.Name)
	if t == nil {
		return nil, Diagnostics{{Severity: Error, Pos: Pos{File: a.file}, Summary: fmt.Sprintf("the new target %q is not in what was written", b.Name)}}
	}
	return &Addition{Lab: l.lab, Target: t, File: a.file, Text: text, Line: 1 + bytes.Count(now[:at], []byte("\n")),
		old: a.old, now: now, fresh: a.old == nil}, ds
}

// insert puts text after the last target block of a file, or at its end, with the
// file's own line ends and an empty line around it. at is where the text begins.
func insert(src []byte, text string) (out []byte, at int) {
	end := "\n"
	if n := bytes.Count(src, []byte("\r\n")); n > 0 && 2*n >= bytes.Count(src, []byte("\n")) {
		end = "\r\n"
	}
	text = strings.ReplaceAll(text, "\n", end)
	i := lastTarget(src)
	head, tail := src[:i], src[i:]
	out = append(out, head...)
	if len(head) > 0 && !bytes.HasSuffix(head, []byte("\n")) {
		out = append(out, end...)
	}
	if len(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))) > 0 && !bytes.HasSuffix(head, []byte("\n"+end)) {
		out = append(out, end...)
	}
	at = len(out)
	out = append(out, text...)
	if len(tail) > 0 && !bytes.HasPrefix(tail, []byte(end)) && !bytes.HasPrefix(tail, []byte("\n")) {
		out = append(out, end...)
	}
	return append(out, tail...), at
}

// lastTarget is the offset after the line on which the last target block ends,
// the file's length when there is none.
func lastTarget(src []byte) int {
	f, diags := hclsyntax.ParseConfig(src, "", hcl.InitialPos)
	if diags.HasErrors() {
		return len(src)
	}
	closed := -1
	for _, b := range f.Body.(*hclsyntax.Body).Blocks {
		if b.Type == "target" {
			closed = max(closed, b.CloseBraceRange.End.Byte)
		}
	}
	if closed < 0 {
		return len(src)
	}
	// A comment may follow on the line, and one of several lines too.
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos) // it was parsed
	for _, t := range tokens {
		if t.Range.Start.Byte >= closed && (t.Type == hclsyntax.TokenNewline || t.Type == hclsyntax.TokenComment && bytes.HasSuffix(t.Bytes, []byte("\n"))) {
			return t.Range.End.Byte
		}
	}
	return len(src)
}

// listed is list, with the files that exist only for this load.
func (l *loader) listed(path string) ([]string, error) {
	if _, ok := l.instead[path]; ok {
		abs, err := filepath.Abs(path)
		l.dir = filepath.Dir(abs)
		return []string{path}, err
	}
	names, err := l.list(path)
	var more []string
	for name := range l.instead {
		if !slices.Contains(names, name) {
			more = append(more, name)
		}
	}
	if len(more) > 0 && l.dir != "" {
		names, err = append(names, more...), nil // the folder held no other file
		slices.Sort(names)
	}
	return names, err
}

// source reads a file, or what stands instead of it.
func (l *loader) source(name string) (src []byte, whole bool, err error) {
	if b, ok := l.instead[name]; ok {
		return b, len(b) <= maxFile, nil
	}
	return readLimited(name)
}
