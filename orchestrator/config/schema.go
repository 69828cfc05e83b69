package config

import (
	"slices"
	"strings"
)

// Schema describes testbeds.hcl, in the JSON shape that HCL defines for such files,
// as a JSON Schema (2020-12): for programs beside an editor that write or check a
// configuration as data. In that shape a block is an object, each of its labels a
// level of it, and several blocks of one name are an array; a text may be a template, "${kernel.bfs}".
func Schema() map[string]any {
	s := schema{blocks: Blocks(), defs: map[string]any{}}
	top := map[string]any{"locals": s.many(map[string]any{"type": "object", "description": "name = value, used as local.name"})}
	s.defs["class"] = s.class()
	for _, kind := range []string{"class", "target", "kernel", "sweep", "variable"} {
		if kind != "class" {
			s.defs[kind] = s.object(kind, "", true)
		}
		top[kind] = s.labelled(pointer(kind))
	}
	top["workload"] = s.byDriver("workload", s.workload, true)
	top["notify"] = s.byDriver("notify", s.notifyNamed, true)
	return map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "testbeds.hcl", "description": strings.Split(Introduction, "\n")[0],
		"type": "object", "properties": top, "additionalProperties": false, "$defs": s.defs,
	}
}

type schema struct {
	blocks []BlockDoc
	defs   map[string]any
}

func pointer(name string) map[string]any { return map[string]any{"$ref": "#/$defs/" + name} }

// many is one of a thing or an array of it.
func (s *schema) many(of map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{of, map[string]any{"type": "array", "items": of}}}
}

// labelled is blocks by a label that people choose.
func (s *schema) labelled(of map[string]any) map[string]any {
	return s.many(map[string]any{"type": "object", "additionalProperties": s.many(of)})
}

func (s *schema) find(kind, driver string) BlockDoc {
	i := slices.IndexFunc(s.blocks, func(b BlockDoc) bool { return b.Kind == kind && b.Driver == driver })
	if i < 0 {
		return BlockDoc{Kind: kind, Driver: driver}
	}
	return s.blocks[i]
}

// driversOf names the drivers of a kind of block.
func (s *schema) driversOf(kind string) []string {
	var names []string
	for _, b := range s.blocks {
		if b.Kind == kind && b.Driver != "" {
			names = append(names, b.Driver)
		}
	}
	return names
}

// byDriver is blocks whose first label is a driver's name; named ones have a second
// label.
func (s *schema) byDriver(kind string, content func(driver string) map[string]any, named bool) map[string]any {
	props := map[string]any{}
	for _, d := range s.driversOf(kind) {
		name := kind + "-" + d
		if named {
			name += "-named"
		}
		s.defs[name] = content(d)
		if props[d] = s.many(pointer(name)); named {
			props[d] = s.labelled(pointer(name))
		}
	}
	return s.many(map[string]any{"type": "object", "properties": props, "additionalProperties": false})
}

// object is the content of a block.
func (s *schema) object(kind, driver string, required bool) map[string]any {
	b := s.find(kind, driver)
	props, need := s.attributes(b)
	for _, in := range b.Inner {
		props[in] = s.inner(kind, in)
	}
	o := map[string]any{"type": "object", "title": b.Heading(), "properties": props, "additionalProperties": false}
	if b.Doc != "" {
		o["description"] = b.Doc
	}
	if required && len(need) > 0 {
		o["required"] = need
	}
	return o
}

// class is a target of which nothing is demanded.
func (s *schema) class() map[string]any { return s.object("target", "", false) }

// inner is a block in another.
func (s *schema) inner(kind, in string) map[string]any {
	switch {
	case in == "image":
		s.defs[in] = s.object(in, "", true)
		return s.labelled(pointer(in))
	case in == "notify":
		return s.byDriver(in, s.notify, false)
	case len(s.driversOf(in)) > 0:
		return s.byDriver(in, func(d string) map[string]any { return s.object(in, d, kind != "target") }, false)
	}
	if s.defs[in] == nil {
		s.defs[in] = s.object(in, "", kind == "sweep")
	}
	return s.many(pointer(in))
}

// workload is a workload's content: its own, and what every kind has.
func (s *schema) workload(kind string) map[string]any {
	o := s.merged("workload", kind)
	inner := s.merged("workload", kind)
	delete(inner, "required") // the workload may have said it
	o["properties"].(map[string]any)["scenario"] = s.labelled(inner)
	delete(o, "required") // a scenario may say it
	return o
}

func (s *schema) merged(kind, driver string) map[string]any {
	o := s.object(kind, driver, true)
	common, _ := s.attributes(s.find(kind, ""))
	for name, a := range common {
		if _, own := o["properties"].(map[string]any)[name]; !own {
			o["properties"].(map[string]any)[name] = a
		}
	}
	return o
}

// notify in a sweep may name one of the file, and then needs nothing else.
func (s *schema) notify(kind string) map[string]any {
	o := s.merged("notify", kind)
	delete(o, "required")
	return s.labelledOr(o)
}

// labelledOr is a block with or without a second label.
func (s *schema) labelledOr(o map[string]any) map[string]any {
	return map[string]any{"anyOf": []any{o, map[string]any{"type": "object", "additionalProperties": s.many(o)}}}
}

func (s *schema) notifyNamed(kind string) map[string]any { return s.object("notify", kind, false) }

// attributes are the properties of a block, and those that it must have.
func (s *schema) attributes(b BlockDoc) (props map[string]any, need []string) {
	props = map[string]any{}
	for _, a := range b.Attributes {
		p := a.schema()
		p["description"] = a.Doc
		props[a.Name] = p
		if a.Required {
			need = append(need, a.Name)
		}
	}
	return props, need
}

const (
	template        = `\$\{.*\}`
	durationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|` + template
	computedRef     = `^\$\{.*(local\.|var\.|\(|\?|for )`
	percentPattern  = `^[0-9.]+ *%$|` + template
)

// schema is what a value of the attribute may be: of its type, or a template that
// gives one.
func (a AttributeDoc) schema() map[string]any {
	computed := map[string]any{"type": "string", "pattern": template}
	or := func(x map[string]any) map[string]any { return map[string]any{"anyOf": []any{x, computed}} }
	kind, isList := strings.CutPrefix(a.Type, "list of ")
	if kind, isRef := strings.CutSuffix(kind, ".NAME"); isRef {
		// Both are accepted in JSON: "${kernel.bfs}" and "kernel.bfs".
		one := map[string]any{"type": "string", "pattern": `^(\$\{ *)?` + kind + `\.[A-Za-z_]|` + computedRef}
		if isList {
			return or(map[string]any{"type": "array", "items": one})
		}
		return one
	}
	switch a.Type {
	case "list":
		return or(map[string]any{"type": "array", "items": map[string]any{"type": []string{"string", "number"}}})
	case "map":
		return or(map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}})
	case "number":
		return or(map[string]any{"type": "number"})
	case "true or false":
		return or(map[string]any{"type": "boolean"})
	case `number or "auto"`:
		return map[string]any{"anyOf": []any{map[string]any{"type": "number"}, map[string]any{"const": "auto"}, computed}}
	case "duration":
		return map[string]any{"type": "string", "pattern": durationPattern}
	case "percentage":
		return map[string]any{"type": "string", "pattern": percentPattern}
	case "any value":
		return map[string]any{}
	}
	if len(a.Choices) > 0 {
		return or(map[string]any{"enum": a.Choices})
	}
	return map[string]any{"type": "string"}
}
