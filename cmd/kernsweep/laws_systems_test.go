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

	load "golang.org/x/tools/go/packages"
)

// kernsweep is released for these beside the machine that this test runs on.
// Types are checked and no code is made, which takes a tenth of the time of a build.
func TestEverySystemIsBuiltFor(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ours := root + string(filepath.Separator)
	for _, system := range [][]string{
		{"GOOS=darwin", "GOARCH=arm64"}, {"GOOS=darwin", "GOARCH=amd64"},
		{"GOOS=linux", "GOARCH=arm", "GOARM=7"}, {"GOOS=linux", "GOARCH=arm64"},
	} {
		name := strings.NewReplacer("GOOS=", "", "GOARCH=", "", "GOARM=", "v").Replace(strings.Join(system, " "))
		t.Run(name, func(t *testing.T) {
			all, err := load.Load(&load.Config{
				Context: t.Context(),
				Mode:    load.NeedName | load.NeedFiles | load.NeedImports | load.NeedDeps | load.NeedTypes | load.NeedSyntax | load.NeedTypesSizes,
				Env:     append(append(os.Environ(), "CGO_ENABLED=0"), system...),
				ParseFile: func(set *token.FileSet, file string, src []byte) (*ast.File, error) {
					f, err := parser.ParseFile(set, file, src, parser.SkipObjectResolution)
					if f != nil && !strings.HasPrefix(file, ours) {
						declare(f) // others have built theirs
					}
					return f, err
				},
			}, "kernsweep/cmd/kernsweep")
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			load.Visit(all, nil, func(p *load.Package) {
				if !strings.HasPrefix(p.PkgPath, "kernsweep/") {
					return
				}
				seen++
				for _, e := range p.Errors {
					t.Error(e)
				}
			})
			if seen < 10 {
				t.Errorf("only %d packages of this module were looked at", seen)
			}
		})
	}
}

// declare drops the bodies of a file's functions.
func declare(f *ast.File) {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			fn.Body = nil
		}
	}
}

// CONTRIBUTING names files and folders that are there.
func TestContributingNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile("../../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:cmd|docs|orchestrator|scripts|targets|workloads)/?[a-z/_-]*(?:\\.go|\\.sh|\\.md)?)`").FindAllStringSubmatch(string(text), -1)
	if len(names) < 20 {
		t.Fatalf("only %d names were found", len(names))
	}
	for _, n := range names {
		if _, err := os.Stat("../../" + n[1]); err != nil {
			t.Error(err)
		}
	}
}
