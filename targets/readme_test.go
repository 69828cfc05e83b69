package targets

import (
	"os"
	"strings"
	"testing"
)

// The README's examples are the ones that compile.
func TestReadmeShowsTheExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(code), "// README: ")
	if len(parts) != 5 {
		t.Fatalf("%d parts", len(parts))
	}
	for _, p := range parts[1:4] {
		name, body, _ := strings.Cut(p, "\n")
		if !strings.Contains(string(readme), strings.TrimSpace(body)) {
			t.Errorf("README.md does not show the %s example as it is compiled", name)
		}
	}
}
