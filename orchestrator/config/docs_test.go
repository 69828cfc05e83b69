package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const docsFile = "../../docs/testbeds.md"

// TestReferenceDocs: docs/testbeds.md is what the descriptions say now. With -update
// it is written anew.
func TestReferenceDocs(t *testing.T) {
	want := markdownReference()
	if *update {
		if err := os.WriteFile(docsFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: go test ./orchestrator/config -run TestReferenceDocs -update", docsFile)
	}
	if strings.Contains(want, undocumented) {
		t.Error("an attribute has no description")
	}
}

// TestBlockExamples: the examples are in the canonical layout, and decode together.
func TestBlockExamples(t *testing.T) {
	var all strings.Builder
	for _, b := range Blocks() {
		if got := string(Format([]byte(b.Example))); got != b.Example {
			t.Errorf("the example of %s is laid out as\n%s", b.Title, got)
		}
		all.WriteString(b.Example)
	}
	all.WriteString("kernel \"cfs\" {}\n")
	file := t.TempDir() + "/lab.hcl"
	if err := os.WriteFile(file, []byte(all.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, diags := Load(file, nil, os.LookupEnv); diags.HasErrors() {
		t.Errorf("%s\n%s", diags, all.String())
	}
}

func markdownReference() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# testbeds.hcl\n\n<!-- Made from the descriptions that the decoder uses: change those, then\n     go test ./orchestrator/config -run TestReferenceDocs -update -->\n\n%s\n", Introduction)
	b.WriteString("\nThe same is in a terminal: `kernsweep testbeds`, `man testbeds.hcl`; as a JSON Schema: `kernsweep schema`.\n\n")
	for _, block := range Blocks() {
		if block.In == "" {
			fmt.Fprintf(&b, "- [%s](#%s)\n", inTable(block.Title), anchor(block.Title))
		}
	}
	for _, block := range Blocks() {
		level := "##"
		if block.In != "" {
			level = "###"
		}
		fmt.Fprintf(&b, "\n%s %s\n", level, inTable(block.Heading()))
		if block.Doc != "" {
			fmt.Fprintf(&b, "\n%s.\n", inTable(block.Doc))
		}
		if block.Example != "" {
			fmt.Fprintf(&b, "\n```hcl\n%s```\n", block.Example)
		}
		if len(block.Attributes) > 0 {
			b.WriteString("\n| attribute | type | default | |\n|---|---|---|---|\n")
		}
		for _, a := range block.Attributes {
			given := inTable(a.Default)
			if a.Required {
				given = "**required**"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", a.Name, inTable(a.Type), given, inTable(a.Doc))
		}
		if len(block.Inner) > 0 {
			fmt.Fprintf(&b, "\nBlocks in it: `%s`.\n", strings.Join(block.Inner, "`, `"))
		}
	}
	fmt.Fprintf(&b, "\n## locals\n\n`name = value`, used as `local.name`.\n\n## Functions\n\n`%s`\n", strings.Join(Functions(), "`, `"))
	return b.String()
}

// inTable is plain text in a table of Markdown.
func inTable(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "$", `\$`).Replace(s)
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return -1
	}, strings.ToLower(title))
}
