package web

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
	validator "github.com/santhosh-tekuri/jsonschema/v6"

	"kernsweep/orchestrator/results"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// schemas collects what the types of the interface look like.
type schemas struct {
	t   *testing.T
	r   *jsonschema.Reflector
	all map[string]any
}

func newSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{t: t, all: map[string]any{}, r: &jsonschema.Reflector{AllowAdditionalProperties: true, Namer: func(t reflect.Type) string {
		pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		if t.Name() == "" || pkg == "web" {
			return t.Name()
		}
		return pkg + "." + t.Name()
	}}}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../..")
	for _, p := range []string{"orchestrator/live/web", "orchestrator/live", "orchestrator/results"} {
		if err := s.r.AddGoComments("kernsweep", "./"+p, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(here)
	return s
}

// of is a reference to the schema of a value's type, which is collected.
func (s *schemas) of(v any) any {
	if _, ok := v.(map[string]any); ok {
		return map[string]any{"type": "object"}
	}
	doc := s.generic(s.r.Reflect(v))
	defs, _ := doc["$defs"].(map[string]any)
	for name, d := range defs {
		s.all[name] = s.moved(d, "")
	}
	s.nullable(reflect.TypeOf(v))
	return s.moved(map[string]any{"$ref": doc["$ref"]}, "")
}

func (s *schemas) generic(v any) map[string]any {
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return decoded[map[string]any](s.t, b)
}

// raw is a reference to a schema that a package has of its own.
func (s *schemas) raw(b []byte, prefix string) any {
	doc := decoded[map[string]any](s.t, b)
	for name, d := range doc["$defs"].(map[string]any) {
		s.all[prefix+name] = s.moved(d, prefix)
	}
	return s.moved(map[string]any{"$ref": doc["$ref"]}, prefix)
}

// moved are references to where OpenAPI keeps schemas.
func (s *schemas) moved(v any, prefix string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			if text, ok := x.(string); ok && k == "$ref" {
				x = strings.Replace(text, "#/$defs/", "#/components/schemas/"+prefix, 1)
			}
			out[k] = s.moved(x, prefix)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.moved(v[i], prefix)
		}
		return out
	}
	return v
}

// nullable says that pointers that are always written may be null.
func (s *schemas) nullable(t reflect.Type) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		return
	}
	def, _ := s.all[s.r.Namer(t)].(map[string]any)
	props, _ := def["properties"].(map[string]any)
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		p, _ := props[name].(map[string]any)
		if f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit") && p["type"] != nil {
			p["type"] = []any{p["type"], "null"}
		}
		s.nullable(f.Type)
	}
}

// generated is the description as the routes and types are now.
func generated(t *testing.T, s *Server) []byte {
	t.Helper()
	types := newSchemas(t)
	problem := map[string]any{"description": "What went wrong, and what to do.",
		"content": map[string]any{"application/problem+json": map[string]any{"schema": types.of(Problem{})}}}
	paths := map[string]any{}
	for _, r := range s.apiRoutes() {
		op := map[string]any{"operationId": r.api.id, "summary": r.api.summary}
		var params []any
		for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(r.path, -1) {
			params = append(params, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, q := range r.api.query {
			params = append(params, map[string]any{"name": q.name, "in": "query", "description": q.about, "schema": map[string]any{"type": q.kind}})
		}
		if params != nil {
			op["parameters"] = params
		}
		if r.api.body != nil {
			op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": types.of(r.api.body)}}}
		}
		var answer any
		if r.api.schema != nil {
			answer = types.raw(r.api.schema, "report.")
		} else {
			answer = types.of(r.api.answer)
		}
		op["responses"] = map[string]any{"default": problem, "200": map[string]any{"description": "As asked.",
			"content": map[string]any{"application/json": map[string]any{"schema": answer}}}}
		ops, _ := paths[r.path].(map[string]any)
		if ops == nil {
			ops = map[string]any{}
			paths[r.path] = ops
		}
		ops[strings.ToLower(r.method)] = op
	}
	b, err := json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "kernsweep serve", "version": "1", "description": "Runs, targets and leases of a lab. Fields are added without a new version: ignore those you do not know. " +
			"Live runs also send server-sent events at /runs/{run}/events and /runs/{run}/lanes/{lane}/console/stream; metrics for Prometheus are at /metrics.",
			"license": map[string]any{"name": "as kernsweep"}},
		"servers":  []any{map[string]any{"url": "/"}},
		"security": []any{map[string]any{}, map[string]any{"token": []any{}}, map[string]any{"certificate": []any{}}},
		"paths":    paths,
		"components": map[string]any{"schemas": types.all, "securitySchemes": map[string]any{
			"token":       map[string]any{"type": "http", "scheme": "bearer"},
			"certificate": map[string]any{"type": "mutualTLS"}}},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// openapi.json is what the routes and types say; with -update it is written anew.
func TestDescriptionIsCurrent(t *testing.T) {
	s := newLab(t).page(Options{})
	got := generated(t, s)
	if *update {
		if err := os.WriteFile("openapi.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(description), string(got)); d != "" {
		t.Errorf("openapi.json is not current (go test -update writes it anew):\n%s", d)
	}
	for _, r := range s.routes() {
		if strings.HasPrefix(r.path, "/api/") && r.api == nil {
			t.Errorf("%s %s is not described", r.method, r.path)
		}
	}
}

// Every answer is as it is described, errors too.
func TestAnswersAreAsDescribed(t *testing.T) {
	l := newLab(t)
	l.steer()
	l.src.Targets = func() ([]Target, error) {
		return []Target{{Name: "box", Arch: "amd64", Rehearsal: &Rehearsal{When: time.Now(), OK: true}}, {Name: "idle"}}, nil
	}
	l.src.Leases = func() ([]Lease, error) {
		return []Lease{{What: "target box", By: "ada (process 1)", Since: time.Now(), State: "held"}}, nil
	}
	l.past(4)
	n := l.newNight("tonight", 4, "box", "router")
	n.boots("box", "cfs", 1, results.OK)
	n.judged("box", "cfs", 1, 1, results.OK, "")
	n.boots("router", "bfs", 1, results.BootFailed, "panic")
	if err := os.MkdirAll(l.runs+"/broken", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.runs+"/broken/run.json", []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := l.page(Options{})
	c := validator.NewCompiler()
	doc, err := validator.UnmarshalJSON(bytes.NewReader(description))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("openapi.json", doc); err != nil {
		t.Fatal(err)
	}
	check := func(r route, code string, media string, body []byte) {
		t.Helper()
		at := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
		where := "openapi.json#/paths/" + at.Replace(r.path) + "/" + strings.ToLower(r.method) + "/responses/" + code + "/content/" + at.Replace(media) + "/schema"
		schema, err := c.Compile(where)
		if err != nil {
			t.Fatalf("%s %s: %v", r.method, r.path, err)
		}
		v, err := validator.UnmarshalJSON(bytes.NewReader(body))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s %s: %v in\n%s", r.method, r.path, err, body)
		}
	}
	var seen []string
	for _, r := range s.apiRoutes() {
		path := strings.NewReplacer("{run}", n.run.Name(), "{lane}", "router").Replace(r.path)
		body := ""
		if r.method == "POST" {
			body = `{"action": "pause", "lane": "box"}`
		}
		asJSON := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
		w := do(s, r.method, path, body, asJSON)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s\n%s", r.method, path, w.Code, w.Header().Get("Content-Type"), w.Body)
			continue
		}
		check(r, "200", "application/json", w.Body.Bytes())
		seen = append(seen, r.path)
		if strings.Contains(r.path, "{run}") {
			w := do(s, r.method, strings.Replace(path, n.run.Name(), "nosuch", 1), body, asJSON)
			if w.Code != http.StatusNotFound || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s of no run: %d %s", r.path, w.Code, w.Header().Get("Content-Type"))
			}
			check(r, "default", "application/problem+json", w.Body.Bytes())
		}
	}
	if !slices.Contains(seen, "/api/runs/{run}/report") || len(seen) < 9 {
		t.Errorf("answered: %v", seen)
	}
	if got := decoded[Runs](t, get(s, "/api/runs?limit=2").Body.Bytes()); len(got.Runs) != 2 || got.Runs[0].Run != n.run.Name() || got.More == "" {
		t.Errorf("two runs: %+v", got)
	}
	all := decoded[Runs](t, get(s, "/api/runs").Body.Bytes())
	if len(all.Runs) != 6 || all.Runs[5].State != unreadable || len(all.Runs[5].Notes) == 0 {
		t.Errorf("a run that cannot be read: %+v", all.Runs)
	}
	first := decoded[Events](t, get(s, "/api/runs/"+n.run.Name()+"/events?limit=2").Body.Bytes())
	next := decoded[Events](t, get(s, "/api/runs/"+n.run.Name()+"/events?after="+itoa(first.Events[1].Seq)).Body.Bytes())
	if !first.More || next.More || next.Events[0].Seq <= first.Events[1].Seq {
		t.Errorf("events after others: %+v %+v", first, next)
	}
}
