package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// maxFile bounds a configuration file, and a file read by file(), in bytes.
const maxFile = 4 << 20

// Format rewrites a configuration canonically. What does not parse, or nests
// too deeply to be parsed, comes back unchanged.
func Format(src []byte) []byte {
	if len(src) > maxFile {
		return src
	}
	if _, what, _ := tooDeep(src, ""); what != "" {
		return src
	}
	if _, diags := hclsyntax.ParseConfig(src, "", hcl.InitialPos); diags.HasErrors() {
		return src
	}
	return hclwrite.Format(src)
}

// readAll reads the files that path names and parses them. It reports false
// when there is nothing whole to go on with.
func (l *loader) readAll(path string) bool {
	names, err := l.list(path)
	if err != nil {
		l.broken = true
		l.err(Pos{File: path}, "name a file, or a directory that holds *.hcl files with -f", "cannot read the configuration: %v", reason(err))
		return false
	}
	for _, name := range names {
		l.read(name)
	}
	return !l.broken
}

// list names the files to read and sets l.dir.
func (l *loader) list(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		l.dir = filepath.Dir(abs)
		return []string{path}, nil
	}
	l.dir = abs
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var names []string
	var seen []fs.FileInfo
next:
	for _, e := range entries {
		name := filepath.Join(path, e.Name())
		if !strings.HasSuffix(e.Name(), ".hcl") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			continue
		}
		for _, other := range seen {
			if os.SameFile(other, st) {
				l.warn(Pos{File: name}, "", "this is %s under a second name: read once", other.Name())
				continue next
			}
		}
		seen = append(seen, st)
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, errors.New("the directory holds no *.hcl file")
	}
	sort.Strings(names)
	return names, nil
}

// read reads and parses one file, as far as that is safe.
func (l *loader) read(name string) {
	src, whole, err := readLimited(name)
	if err != nil {
		l.broken = true
		l.err(Pos{File: name}, "", "cannot read the file: %v", reason(err))
		return
	}
	if at, what, detail := tooDeep(src, name); what != "" {
		l.broken = true
		l.err(at, detail, "%s", what)
		return
	}
	if !whole {
		l.broken = true
		l.err(Pos{File: name}, "split it: a directory of files is read too", "the file is larger than %d MB", maxFile>>20)
		return
	}
	l.lab.Sources[filepath.Base(name)] = src
	l.src[name] = src
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	l.lintTokens(name, src, tokens)
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	l.hclDiags(diags)
	l.broken = l.broken || diags.HasErrors()
	if body, ok := f.Body.(*hclsyntax.Body); ok {
		meterBody(body)
		l.bodies = append(l.bodies, body)
	}
}

// readLimited reads at most maxFile bytes; whole says that there were no more.
func readLimited(name string) (src []byte, whole bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	src, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, false, err
	}
	if len(src) > maxFile {
		return src[:maxFile], false, nil
	}
	return src, true, nil
}

// reason is an error without the path, which the position already shows.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// hclDiags takes over the library's diagnostics.
func (l *loader) hclDiags(ds hcl.Diagnostics) {
	for _, d := range ds {
		p := Pos{}
		if d.Subject != nil {
			p = posOf(*d.Subject)
		}
		if d.Severity == hcl.DiagWarning {
			l.warn(p, d.Detail, "%s", lowerFirst(d.Summary))
			continue
		}
		detail := d.Detail
		if head, _, ok := strings.Cut(detail, "panic in function implementation"); ok {
			detail = head + "it takes no such value"
		}
		l.value(p, detail, "%s", lowerFirst(d.Summary))
	}
}

func posOf(r hcl.Range) Pos {
	return Pos{File: r.Filename, Line: r.Start.Line, Col: r.Start.Column}
}

func lowerFirst(s string) string {
	if len(s) > 1 && s[1] >= 'a' && s[1] <= 'z' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// absolute makes a path of the files absolute: ~ is the home directory, what is
// relative starts at the files' directory.
func (l *loader) absolute(p string) string {
	if p == "" {
		return ""
	}
	if p == "~" || strings.HasPrefix(p, "~/") {
		if home, ok := l.env("HOME"); ok {
			p = home + p[1:]
		}
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(l.dir, p)
	}
	return filepath.Clean(p)
}

// quoted lists names for a message.
func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}
