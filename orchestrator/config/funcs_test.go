package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestOddArguments calls every function with every kind of value, references
// among them: the worst answer is a diagnostic.
func TestOddArguments(t *testing.T) {
	values := []string{"kernel.a", "null", "1", `"x"`, "[]", "{}", "[kernel.a]", "{ a = kernel.a }", "true", "-1", "[null]", `["x", "y"]`}
	var b strings.Builder
	n := 0
	add := func(expr string) {
		fmt.Fprintf(&b, "  v%d = %s\n", n, expr)
		n++
	}
	names := keys((&loader{}).functions())
	for _, f := range names {
		add(f + "()")
		for _, x := range values {
			add(fmt.Sprintf("%s(%s)", f, x))
			for _, y := range values {
				add(fmt.Sprintf("%s(%s, %s)", f, x, y))
			}
			add(fmt.Sprintf("%s(%s, %s, %s)", f, x, x, x))
		}
	}
	for _, x := range values {
		for _, form := range []string{"-%s", "!%s", "%s ? 1 : 2", "[for k, v in %s : v]", "{ for k, v in %s : k => v }", "%s[0]", "%s.a", "%s[*]", `"${%s}"`, "{ (%s) = 1 }", `"%%{for x in %s}${x}%%{endfor}"`} {
			add(fmt.Sprintf(form, "("+x+")"))
		}
		for _, y := range values {
			for _, op := range []string{"==", "+", "&&", "<", "%"} {
				add(fmt.Sprintf("(%s) %s (%s)", x, op, y))
			}
		}
	}
	lab, ds := loadTexts(t, map[string]string{"lab.hcl": "kernel \"a\" {}\nlocals {\n" + b.String() + "}\n"}, nil)
	if lab != nil || len(ds) < 100 {
		t.Errorf("%d diagnostics for %d expressions", len(ds), n)
	}
	for _, d := range ds {
		if strings.Contains(d.Summary+d.Detail, "panic") {
			t.Error(d)
		}
	}
}

// TestBombs: values that would fill the memory or the stack are refused.
func TestBombs(t *testing.T) {
	for _, expr := range []string{
		`format("%2000000000d", 1)`,
		`format("%.2000000000f", 1)`,
		`formatlist("%2000000000s", ["x"])`,
		`jsondecode(file("deep.json"))`,
	} {
		lab, ds := loadTexts(t, map[string]string{
			"lab.hcl": "locals { x = " + expr + " }\n", "deep.json": strings.Repeat("[", 1_000_000),
		}, nil)
		if lab != nil || len(ds) != 1 {
			t.Errorf("%s: %v", expr, ds)
		}
	}
	for _, expr := range []string{`format("%8.3f|%-20s|100%%", 1, "x")`, `jsondecode("{\"a\": \"[[[\", \"b\": [[1]]}")`} {
		if lab, ds := loadTexts(t, map[string]string{"lab.hcl": "locals { x = " + expr + " }\n"}, nil); lab == nil {
			t.Errorf("%s: %v", expr, ds)
		}
	}
}
