package workloads

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the generated parts of README.md")

// TestREADME holds README.md against the code: the example and the attributes.
func TestREADME(t *testing.T) {
	have, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "// copy.go\n\n")
	code, _, _ = strings.Cut(code, "\n// end of copy.go")
	imports := "package workloads\n\nimport (\n\t\"cmp\"\n\t\"context\"\n\t\"fmt\"\n\t\"io/fs\"\n\t\"strconv\"\n\t\"time\"\n)\n\n"
	want := between(t, string(have), "tests of this package):\n\n```go\n", "```\n\nThe line", imports+code)
	want = between(t, want, "takes what `Common` lists:", ".\n\n<!-- begin", common())
	want = between(t, want, "-update -->\n", "<!-- end", table())
	if *update {
		if err := os.WriteFile("README.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(have) != want {
		t.Error("README.md is not what the code says: run go test ./workloads -run TestREADME -update")
	}
}

// between replaces what stands between two marks.
func between(t *testing.T, text, from, to, middle string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("README.md lacks the mark %q or %q", from, to)
	}
	return before + from + middle + to + after
}

// attributes calls f for every attribute of a struct, in order.
func attributes(v any, f func(name, kind, doc string, optional bool)) {
	for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
		tag, ok := field.Tag.Lookup("hcl")
		if !ok {
			continue
		}
		name, option, _ := strings.Cut(tag, ",")
		kind := map[string]string{"time.Duration": "duration", "[]string": "list", "map[string]string": "map", "bool": "bool",
			"int": "number", "int64": "number", "float64": "number"}[field.Type.String()]
		if kind == "" {
			kind = "text"
		}
		f(name, kind, field.Tag.Get("doc"), option == "optional")
	}
}

func common() string {
	var out []string
	attributes(Common{}, func(name, kind, doc string, _ bool) {
		out = append(out, fmt.Sprintf("\n`%s` (%s: %s)", name, kind, doc))
	})
	return strings.Join(out, ",")
}

func table() string {
	var b strings.Builder
	all := All()
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "\n### %s\n\n| attribute | type | meaning |\n|---|---|---|\n", kind)
		attributes(reflect.ValueOf(all[kind]()).Elem().Interface(), func(name, typ, doc string, optional bool) {
			if !optional {
				typ += ", required"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, typ, strings.ReplaceAll(doc, "|", "\\|"))
		})
	}
	return b.String() + "\n"
}
