package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
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

// TestEndlessValues: what a few lines can blow up ends with one diagnostic at
// the attribute, in bounded time and memory; ordinary sizes pass.
func TestEndlessValues(t *testing.T) {
	doubled := func(form string) string {
		var b strings.Builder
		for i := range 40 {
			s := strings.ReplaceAll(form, "A", fmt.Sprintf("local.a%d", i))
			fmt.Fprintf(&b, "  a%d = %s\n", i+1, s)
		}
		return b.String()
	}
	long := "  a0 = \"0123456789\"\n" + strings.Join(strings.SplitAfter(doubled(`"${A}${A}"`), "\n")[:16], "")
	few, slow := "more than 50000 elements", "takes too long to compute"
	for name, c := range map[string]struct{ locals, want string }{
		"lists of lists":    {"  a0 = [1]\n" + doubled("[A, A]"), few},
		"longer lists":      {"  a0 = [1]\n" + doubled("concat(A, A)"), few},
		"three loops":       {"  a = range(1000)\n  b = [for x in local.a : [for y in local.a : [for z in local.a : 1]]]\n", slow},
		"loops of maps":     {"  a = range(1000)\n  b = { for x in local.a : x => { for y in local.a : y => { for z in local.a : z => 1 } } }\n", slow},
		"loops in a text":   {"  b = \"%{for i in range(1000)}%{for j in range(1000)}%{for k in range(1000)}x%{endfor}%{endfor}%{endfor}\"\n", slow},
		"functions in them": {"  b = [for i in range(1000) : [for j in range(1000) : join(\"\", range(100))]]\n", slow},
		"a text of texts":   {long + "  b = \"" + strings.Repeat("${local.a16}", 20_000) + "\"\n", slow},
		"texts in a loop":   {long + "  b = [for i in range(1000) : \"${local.a16}${local.a16}\"]\n", slow},
		"replace":           {long + "  b = replace(local.a16, \"1\", local.a16)\n", slow},
		"regexreplace":      {long + "  b = regexreplace(local.a16, \"1\", local.a16)\n", slow},
		"join":              {long + "  b = join(local.a16, range(1000))\n", slow},
		"format":            {long + "  b = format(\"" + strings.Repeat("%[1]s", 5000) + "\", local.a16)\n", slow},
		"ordinary sizes": {"  a = flatten([for i in range(100) : [for j in range(50) : \"h${i}-${j}.lab\" if j != 7]])\n" +
			"  b = replace(file(\"script\"), \"@HOST@\", \"192.168.1.1\")\n", ""},
	} {
		start := cpuTime(t)
		_, ds := loadTexts(t, map[string]string{"lab.hcl": "locals {\n" + c.locals + "}\n", "script": strings.Repeat("echo @HOST@\n", 1000)}, nil)
		if c.want == "" && len(ds) > 0 || c.want != "" && (len(ds) != 1 || !strings.Contains(ds.String(), c.want) || ds[0].Pos.Line == 0) {
			t.Errorf("%s: %v, want %q", name, ds, c.want)
		}
		if took := cpuTime(t) - start; took > 3*time.Second {
			t.Errorf("%s: took %v of CPU", name, took)
		}
	}
}
