package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list` says of a package of the module.
type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports", "kernsweep/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func under(path, folder string) bool {
	return path == "kernsweep/"+folder || strings.HasPrefix(path, "kernsweep/"+folder+"/")
}

// Law 1, and the arrows of the layout.
func TestDependenciesPointOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			var why string
			switch {
			case strings.HasPrefix(i, "github.com/hashicorp/hcl") && !under(p.ImportPath, "orchestrator/config"):
				why = "only orchestrator/config knows HCL"
			case (strings.HasPrefix(i, "golang.org/x/crypto/ssh") || strings.HasPrefix(i, "github.com/pkg/sftp")) &&
				!under(p.ImportPath, "targets/sshconn") && !under(p.ImportPath, "targets/targetstest"):
				why = "only targets/sshconn speaks SSH"
			case (under(p.ImportPath, "targets") || under(p.ImportPath, "workloads")) && under(i, "orchestrator"):
				why = "targets and workloads do not know the orchestrator"
			case under(p.ImportPath, "targets") && under(i, "workloads"):
				why = "targets do not know workloads"
			case (under(p.ImportPath, "orchestrator/report") || under(p.ImportPath, "orchestrator/stats")) &&
				(under(i, "orchestrator/config") || under(i, "targets/sshconn") || under(i, "targets/qemu") || i == "kernsweep/orchestrator"):
				why = "a report never reaches a target or the configuration"
			case under(p.ImportPath, "orchestrator/stats") && strings.HasPrefix(i, "kernsweep/"):
				why = "statistics are pure"
			case !under(p.ImportPath, "cmd") && under(i, "cmd"):
				why = "nothing imports a command"
			}
			if why != "" {
				t.Errorf("%s imports %s: %s", p.ImportPath, i, why)
			}
		}
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
		if base := filepath.Base(p.ImportPath); slices.Contains([]string{"util", "utils", "common", "helpers", "misc"}, base) {
			t.Errorf("%s: a package is named after what it is for", p.ImportPath)
		}
	}
}

// Law 10. A package-level variable may be a constant in spirit: a compiled
// pattern, an error, an embedded file, a blank assertion. Maps, slices, pointers
// and channels are functions or fields instead.
func TestNoPackageState(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.Name == "init" && d.Recv == nil {
						t.Errorf("%s: init()", path)
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						checkVars(t, path, d)
					}
				}
			}
		}
	}
}

func checkVars(t *testing.T, path string, d *ast.GenDecl) {
	t.Helper()
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for i, n := range v.Names {
			if n.Name == "_" || len(v.Values) <= i && isEmbed(v) {
				continue
			}
			if len(v.Values) <= i || !constantInSpirit(v.Values[i]) {
				t.Errorf("%s: package-level variable %s: make it a field, a constant or a function", path, n.Name)
			}
		}
	}
}

func isEmbed(v *ast.ValueSpec) bool {
	switch typ := v.Type.(type) {
	case *ast.Ident:
		return typ.Name == "string"
	case *ast.ArrayType:
		id, ok := typ.Elt.(*ast.Ident)
		return ok && id.Name == "byte"
	case *ast.SelectorExpr:
		return typ.Sel.Name == "FS"
	}
	return false
}

func constantInSpirit(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.CallExpr:
		s, ok := x.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"MustCompile", "New", "Errorf", "Must"}, s.Sel.Name)
	case *ast.CompositeLit:
		// Arrays and structs are values; maps and slices can be changed from anywhere.
		switch typ := x.Type.(type) {
		case *ast.ArrayType:
			return typ.Len != nil
		case *ast.Ident, *ast.SelectorExpr:
			return true
		}
		return false
	case *ast.BasicLit:
		return true
	}
	return false
}

// The words of DESIGN.md section 2 are the only ones for their things, in what
// people read.
func TestVocabularyOfTheCommandLine(t *testing.T) {
	var out, errw bytes.Buffer
	a := &app{out: &out, err: &errw, env: os.LookupEnv}
	forbidden := regexp.MustCompile(`(?i)\b(DUT|board|iteration|iterations|benchmark job)\b`)
	for _, c := range append(a.root().Commands(), a.root()) {
		text := c.Use + " " + c.Short + " " + c.Long + " " + c.Flags().FlagUsages()
		if m := forbidden.FindString(text); m != "" {
			t.Errorf("%s says %q", c.Name(), m)
		}
		if c.Example == "" && c.HasParent() && c.RunE != nil && !c.HasSubCommands() && c.Name() != "version" && c.Name() != "help" {
			t.Errorf("%s has no example", c.Name())
		}
	}
}

func TestFilesStaySmall(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
		}
		if n > 400 {
			t.Errorf("%s has %d lines: is there a seam?", path, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
