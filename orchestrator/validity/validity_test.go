package validity

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the README's table")

// The table of rules in the README is made of the rules themselves.
func TestReadmeHasTheTable(t *testing.T) {
	const begin, end = "<!-- rules: go test -run Readme -update -->\n", "<!-- end of the rules -->"
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has no %q … %q", begin, end)
	}
	if old == Markdown() {
		return
	}
	if !*update {
		t.Fatalf("the table is out of date: go test ./orchestrator/validity -run Readme -update\n%s", Markdown())
	}
	if err := os.WriteFile("README.md", []byte(head+begin+Markdown()+end+tail), 0o666); err != nil {
		t.Fatal(err)
	}
}
