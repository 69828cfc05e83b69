package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/santhosh-tekuri/jsonschema/v6"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("testbeds.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("testbeds.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is a file in the JSON shape of HCL (the specification's "JSON syntax").
func asJSON(t *testing.T, src []byte) any {
	t.Helper()
	f, diags := hclsyntax.ParseConfig(src, "x.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	raw, err := json.Marshal(bodyJSON(t, src, f.Body.(*hclsyntax.Body)))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func bodyJSON(t *testing.T, src []byte, b *hclsyntax.Body) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, a := range b.Attributes {
		out[name] = valueJSON(t, src, a.Expr)
	}
	for _, in := range b.Blocks {
		at, path := out, append([]string{in.Type}, in.Labels...)
		for _, key := range path[:len(path)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		last := path[len(path)-1]
		list, _ := at[last].([]any)
		at[last] = append(list, bodyJSON(t, src, in.Body))
	}
	return out
}

func valueJSON(t *testing.T, src []byte, e hclsyntax.Expression) any {
	t.Helper()
	if list, ok := e.(*hclsyntax.TupleConsExpr); ok {
		out := []any{}
		for _, x := range list.Exprs {
			out = append(out, valueJSON(t, src, x))
		}
		return out
	}
	if v, diags := e.Value(nil); !diags.HasErrors() {
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(raw)
	}
	return "${" + string(e.Range().SliceBytes(src)) + "}"
}

// The configurations that kernsweep accepts are right by the schema, too.
func TestSchemaTakesWhatIsRight(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("../../examples/historic/*/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../../testbeds.hcl")
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(asJSON(t, src)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	for _, b := range Blocks() {
		if err := s.Validate(asJSON(t, []byte(b.Example))); err != nil {
			t.Errorf("the example of %s: %v", b.Title, err)
		}
	}
}

func TestSchemaRefusesMistakes(t *testing.T) {
	s := compiled(t)
	const whole = `
target "a" {
  host   = "192.0.2.1"
  agent  = "go"
  settle = "10s"
  boot "kexec" {}
}
kernel "k" { release = "6.1*" }
workload "crunch" "w" {
  scenario "s" { parallel = 3 }
}
sweep "n" {
  kernels = [kernel.k]
  matrix {
    targets   = [target.a]
    workloads = [workload.crunch.w]
  }
}
`
	if err := s.Validate(asJSON(t, []byte(whole))); err != nil {
		t.Fatal(err)
	}
	for right, wrong := range map[string]string{
		`host   =`:               `hots =`,
		`"go"`:                   `"gone"`,
		`"10s"`:                  `"10"`,
		`boot "kexec" {}`:        `boot "kexce" {}`,
		`boot "kexec" {`:         `boot "kexec" { no_such = 1 `,
		`target "a"`:             `tagret "a"`,
		`"6.1*"`:                 `6.1`,
		`parallel = 3`:           `parallel = [3]`,
		`workload "crunch"`:      `workload "cruhcn"`,
		`targets   = [target.a]`: `targets   = [kernel.k]`,
		`workloads = [workload`:  `noise = [workload`,
	} {
		text := strings.Replace(whole, right, wrong, 1)
		if text == whole {
			t.Fatalf("%q is not in the configuration", right)
		}
		if s.Validate(asJSON(t, []byte(text))) == nil {
			t.Errorf("with %s the schema says nothing", wrong)
		}
	}
}
