package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"kernsweep/orchestrator/notify"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Reference describes every block and attribute of testbeds.hcl as plain text,
// from the tags of the structs they are decoded into.
func Reference() string {
	d := allDrivers()
	var b strings.Builder
	section := func(title string, t reflect.Type) {
		fmt.Fprintf(&b, "%s\n", title)
		attributes(&b, t, title[:len(title)-len(strings.TrimLeft(title, " "))]+"  ")
		b.WriteByte('\n')
	}
	b.WriteString("Drivers that a target's blocks may name, and kinds of workload; each has its section below.\n")
	for _, slot := range []struct {
		title string
		names []string
	}{{`boot "NAME"`, keys(d.boot)}, {`power "NAME"`, keys(d.power)}, {`console "NAME"`, keys(d.console)}, {`workload "KIND"`, keys(d.workloads)}, {`notify "KIND"`, keys(d.notify)}} {
		wrap(&b, fmt.Sprintf("  %-16s ", slot.title), strings.Repeat(" ", 19), strings.Join(slot.names, ", "))
	}
	b.WriteByte('\n')
	section(`target "NAME", class "NAME"`, reflect.TypeOf(targetBlock{}))
	section("  ssh (in target)", reflect.TypeOf(targets.SSH{}))
	section("  network (in target)", reflect.TypeOf(targets.Network{}))
	section("  timeouts (in target)", reflect.TypeOf(targets.Timeouts{}))
	section("  failures (in target)", reflect.TypeOf(Failures{}))
	for _, n := range keys(d.boot) {
		section(fmt.Sprintf("  boot %q (in target)", n), reflect.TypeOf(d.boot[n]()).Elem())
	}
	for _, n := range keys(d.power) {
		section(fmt.Sprintf("  power %q (in target)", n), reflect.TypeOf(d.power[n]()).Elem())
	}
	for _, n := range keys(d.console) {
		section(fmt.Sprintf("  console %q (in target)", n), reflect.TypeOf(d.console[n]()).Elem())
	}
	section(`kernel "NAME"`, reflect.TypeOf(kernelBlock{}))
	section(`  image "ARCH or TARGET" (in kernel)`, reflect.TypeOf(targets.Image{}))
	section(`workload "KIND" "NAME", and its scenario "NAME" blocks`, reflect.TypeOf(workloads.Common{}))
	for _, n := range keys(d.workloads) {
		section(fmt.Sprintf("  workload %q \"NAME\"", n), reflect.TypeOf(d.workloads[n]()).Elem())
	}
	section(`sweep "NAME"`, reflect.TypeOf(sweepBlock{}))
	section("  matrix (in sweep)", reflect.TypeOf(matrixBlock{}))
	section("  notify (in sweep), whatever its kind", reflect.TypeOf(notify.Choice{}))
	for _, n := range keys(d.notify) {
		section(fmt.Sprintf("  notify %q (in sweep), or notify %q \"NAME\"", n, n), reflect.TypeOf(d.notify[n]()).Elem())
	}
	section(`variable "NAME"`, reflect.TypeOf(variableBlock{}))
	b.WriteString("locals: name = value, used as local.name\n\n")
	wrap(&b, "functions: ", "  ", strings.Join(keys((&loader{}).functions()), ", "))
	return b.String()
}

// attributes writes a line for each attribute of a struct.
func attributes(b *strings.Builder, t reflect.Type, indent string) {
	for _, f := range fieldsOf(t) {
		if f.block {
			fmt.Fprintf(b, "%s%s { … }\n", indent, f.name)
			continue
		}
		need := ""
		if !f.optional {
			need = "required; "
		}
		doc := f.doc
		if doc == "" {
			doc = undocumented
		}
		wrap(b, indent, indent+"    ", fmt.Sprintf("%s (%s): %s%s", f.name, typeName(f), need, doc))
	}
}

const (
	undocumented   = "(not documented)" // and a failed test
	referenceWidth = 110                // columns
)

// wrap writes text after first, going on below after more.
func wrap(b *strings.Builder, first, more, text string) {
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+utf8.RuneCountInString(word) > referenceWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = more
		}
		line += word + " "
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// typeName is how a value of a field is written.
func typeName(f field) string {
	switch {
	case f.typ == reflect.TypeOf([]Ref(nil)):
		return "list of " + f.ref + "." + "NAME"
	case f.ref != "":
		return f.ref + ".NAME"
	case f.typ == reflect.TypeOf(duration(0)):
		return "duration"
	case f.typ == reflect.TypeOf(blocks(0)):
		return `number or "auto"`
	case f.typ == reflect.TypeOf(percent(0)):
		return "percentage"
	case f.typ == reflect.TypeOf((*attr)(nil)):
		return "any value"
	case f.typ.Kind() == reflect.Slice:
		return "list"
	case f.typ.Kind() == reflect.Map:
		return "map"
	case f.typ.Kind() == reflect.String:
		return "text"
	case f.typ.Kind() == reflect.Bool:
		return "true or false"
	default:
		return "number"
	}
}
