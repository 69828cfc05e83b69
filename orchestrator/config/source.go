package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"syscall"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// maxFile bounds a configuration file, and a file read by file(), in bytes.
const maxFile = 4 << 20

// maxSyntax bounds the diagnostics about the syntax of one file: a file that is
// no HCL at all has thousands.
const maxSyntax = 10

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
	names, err := l.listed(path)
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
			l.broken = true
			l.err(Pos{File: name}, "mend it, or move it out of the directory: every *.hcl file there is read", "cannot read the file: %v", reason(err))
			continue
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
	if len(names) == 0 && !l.broken {
		return nil, errors.New("the directory holds no *.hcl file")
	}
	sort.Strings(names)
	return names, nil
}

// read reads and parses one file.
func (l *loader) read(name string) {
	src, whole, err := l.source(name)
	if err != nil {
		l.broken = true
		l.err(Pos{File: name}, "name a text file that you may read", "cannot read the file: %v", reason(err))
		return
	}
	l.parse(name, src, whole)
}

// parse reads the text of one file, as far as that is safe.
func (l *loader) parse(name string, src []byte, whole bool) {
	if at, what, detail := refused(src, name); what != "" {
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
	f, diags := hclsyntax.ParseConfig(src, name, hcl.InitialPos)
	l.broken = l.broken || diags.HasErrors()
	if len(diags) > maxSyntax {
		rest := diags[maxSyntax]
		l.err(posOf(*rest.Subject), "mend the first ones, then validate again", "%d more places from here on are no HCL", len(diags)-maxSyntax)
		diags = diags[:maxSyntax]
	} else {
		tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
		l.lintTokens(name, src, tokens)
	}
	l.hclDiags(diags)
	if body, ok := f.Body.(*hclsyntax.Body); ok {
		meterBody(body)
		l.bodies = append(l.bodies, body)
	}
}

// refused says why a file is not parsed at all, what == "" when it is.
func refused(src []byte, name string) (at Pos, what, detail string) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if strings.HasPrefix(string(src[:min(2, len(src))]), mark) {
			return Pos{File: name, Line: 1, Col: 1}, "the file is UTF-16 text", "save it as UTF-8 (for example by iconv -f UTF-16 -t UTF-8)"
		}
	}
	return tooDeep(src, name)
}

// readLimited reads at most maxFile bytes; whole says that there were no more.
func readLimited(name string) (src []byte, whole bool, err error) {
	// A pipe that nothing writes to must not hold us up.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	src, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, false, err
	}
	if st, err := f.Stat(); err == nil && len(src) == 0 && st.Mode()&fs.ModeNamedPipe != 0 {
		return nil, false, errors.New("nothing writes to this pipe")
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

// rangeText is how the library writes a place: ":2,3-7".
var rangeText = regexp.MustCompile(`:(\d+),(\d+)-(\d+,)?\d+\b`)

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
		detail = rangeText.ReplaceAllString(detail, ":$1:$2")
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
