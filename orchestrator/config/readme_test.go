package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every block that targets/README.md shows is valid as it stands there.
func TestReadmeBlocks(t *testing.T) {
	text, err := os.ReadFile("../../targets/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```hcl\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("no block")
	}
	for _, b := range blocks {
		b, _, _ = strings.Cut(b, "```")
		lab := b
		switch kind, _, _ := strings.Cut(b, " "); kind {
		case "boot", "power", "console":
			lab = fmt.Sprintf("target \"shown\" {\nhost = \"192.0.2.1\"\n%s}\n", b)
			if !strings.Contains(b, "console \"") {
				lab = strings.Replace(lab, "host", "console \"tcp\" { address = \"labpi:2001\" }\nhost", 1)
			}
		}
		if _, ds := loadWith(t, allDrivers(), map[string]string{"lab.hcl": lab}, nil); ds.HasErrors() {
			t.Errorf("targets/README.md shows\n%s%s", b, ds)
		}
	}
}
