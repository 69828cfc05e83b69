package config

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Reference describes every block and attribute of testbeds.hcl as plain text,
// from the tags of the structs they are decoded into.
func Reference() string {
	d := allDrivers()
	var b strings.Builder
	b.WriteString("Drivers that a target's blocks may name, and kinds of workload; sections below.\n")
	for _, slot := range []struct {
		title string
		names []string
	}{{`boot "NAME"`, keys(d.boot)}, {`power "NAME"`, keys(d.power)}, {`console "NAME"`, keys(d.console)}, {`workload "KIND"`, keys(d.workloads)}, {`notify "KIND"`, keys(d.notify)}} {
		wrap(&b, fmt.Sprintf("  %-16s ", slot.title), strings.Repeat(" ", 19), strings.Join(slot.names, ", "))
	}
	b.WriteByte('\n')
	for _, block := range Blocks() {
		indent := ""
		if block.In != "" {
			indent = "  "
		}
		fmt.Fprintf(&b, "%s%s\n", indent, block.Heading())
		attributes(&b, block, indent+"  ")
		b.WriteByte('\n')
	}
	b.WriteString("locals: name = value, used as local.name\n\n")
	wrap(&b, "functions: ", "  ", strings.Join(Functions(), ", "))
	return b.String()
}

// Heading is the block's title and, where it is no block of the file, what it
// stands in.
func (b BlockDoc) Heading() string {
	if b.In == "" || b.In == b.Kind {
		return b.Title
	}
	return b.Title + " (in " + b.In + ")"
}

// attributes writes a line for each attribute of a block.
func attributes(b *strings.Builder, block BlockDoc, indent string) {
	for _, a := range block.Attributes {
		need := ""
		if a.Required {
			need = "required; "
		}
		wrap(b, indent, indent+"    ", fmt.Sprintf("%s (%s): %s%s", a.Name, a.Type, need, a.Doc))
	}
	for _, name := range block.Inner {
		fmt.Fprintf(b, "%s%s { … }\n", indent, name)
	}
}

const (
	undocumented   = "(not documented)" // and a failed test
	referenceWidth = 80                 // columns of the lowest usual terminal
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
