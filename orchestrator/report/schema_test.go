package report

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"kernsweep/orchestrator/results"
)

// generated is the schema of Document as its types and their comments are now.
func generated(t *testing.T) []byte {
	t.Helper()
	t.Chdir("../..")
	r := &jsonschema.Reflector{AllowAdditionalProperties: true, Namer: func(t reflect.Type) string {
		if t.Name() == "" || t.PkgPath() == "" {
			return ""
		}
		pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		if pkg == "report" {
			return t.Name()
		}
		return pkg + "." + t.Name()
	}}
	for _, p := range []string{"orchestrator/report", "orchestrator/results", "orchestrator/compare", "orchestrator/stats", "workloads", "targets"} {
		if err := r.AddGoComments("kernsweep", "./"+p, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	s := r.Reflect(&Document{})
	s.Title = "kernsweep report"
	s.ID = ""
	s.Description = "What `kernsweep report --format json` prints, format 1. Fields are added without a new format number: ignore those you do not know."
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// schema.json is what the types say; with -update it is written anew.
func TestSchemaIsCurrent(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got := generated(t)
	t.Chdir(here)
	if *update {
		if err := os.WriteFile("schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(Schema()), string(got)); diff != "" {
		t.Errorf("schema.json is old (rewrite it with -update):\n%s", diff)
	}
	for _, want := range []string{`"$ref": "#/$defs/Document"`, "results.Boot", "as far as it is known", "format 1"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the schema lacks %q", want)
		}
	}
}

// fits holds a report in JSON against the schema.
func fits(t *testing.T, text string) {
	t.Helper()
	c := validator.NewCompiler()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(Schema()))
	if err == nil {
		err = c.AddResource("schema.json", doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	inst, err := validator.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(inst); err != nil {
		t.Errorf("the report does not fit its schema: %#v", err)
	}
	if strings.Contains(text, "NaN") {
		t.Error("NaN in JSON")
	}
}

// JSON of runs of every shape fits the schema.
func TestSchemaFitsEveryReport(t *testing.T) {
	empty := newLab(t, "empty").done()
	bad := newLab(t, "bad")
	bad.target(results.PlannedTarget{Name: "a"})
	bad.bootAs("a", results.Boot{Kernel: "k", Block: 1, Outcome: results.BootFailed, Reason: "panic"})
	for name, run := range map[string]*results.Run{"empty": empty, "bench": benchRun(t), "hostile": hostileRun(t), "verdicts": verdictRun(t), "no boot": bad.done()} {
		t.Run(name, func(t *testing.T) { fits(t, renderAs(t, run, Options{Format: "json"})) })
	}
}
