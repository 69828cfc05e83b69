package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Who counts says "1 boot" or "3 boots" (orchestrator/plural), never "boot(s)".
func TestCountedThingsAreInWords(t *testing.T) {
	lazy := regexp.MustCompile(`[A-Za-z]\(s\)`)
	others := regexp.MustCompile(`arg\(s\)|http\(s\)://`) // cobra's own words, and a pattern
	seen := 0
	check := func(where, text string) {
		seen++
		if s := lazy.FindString(others.ReplaceAllString(text, "")); s != "" {
			t.Errorf("%s: %q: say how many there are in words", where, text)
		}
	}
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					check(files.Position(l.Pos()).String(), l.Value)
				}
				return true
			})
		}
		pages, err := filepath.Glob(filepath.Join(p.Dir, "html", "*.tmpl"))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			b, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				check(page, line)
			}
		}
	}
	if seen < 1000 {
		t.Errorf("only %d texts were looked at", seen)
	}
}
