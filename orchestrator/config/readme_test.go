package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Every block that a README shows is valid as it stands there.
func TestReadmeBlocks(t *testing.T) {
	for _, path := range []string{"../../targets/README.md", "../README.md", "../../docs/night.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "```hcl\n")[1:]
		if len(blocks) == 0 {
			t.Fatalf("%s: no block", path)
		}
		for _, b := range blocks {
			b, _, _ = strings.Cut(b, "```")
			if _, ds := loadWith(t, allDrivers(), map[string]string{"lab.hcl": around(b)}, nil); ds.HasErrors() {
				t.Errorf("%s shows\n%s%s", path, b, ds)
			}
		}
	}
}

// around is a block with as much of a lab as it needs.
func around(b string) string {
	switch kind, _, _ := strings.Cut(b, " "); kind {
	case "boot", "power", "console":
		lab := fmt.Sprintf("target \"shown\" {\nhost = \"192.0.2.1\"\n%s}\n", b)
		if !strings.Contains(b, "console \"") {
			lab = strings.Replace(lab, "host", "console \"tcp\" { address = \"labpi:2001\" }\nhost", 1)
		}
		return lab
	case "quarantine":
		return fmt.Sprintf("target \"shown\" {\nhost = \"192.0.2.1\"\n%s}\n", b)
	case "notify":
		b = "sweep \"shown\" {\nkernels = [kernel.cfs]\nbaseline = kernel.cfs\n" + b + "matrix {\ntargets = [target.dualcore]\nworkloads = [workload.crunch.ltm]\n}\n}\n"
		return b + `
target "dualcore" { host = "192.0.2.1" }
kernel "cfs" { scheduler = "cfs" }
workload "crunch" "ltm" { parallel = 1 }
`
	case "sweep":
		return b + `
target "dualcore" { host = "192.0.2.1" }
kernel "cfs" { scheduler = "cfs" }
kernel "bfs" { scheduler = "bfs" }
workload "crunch" "ltm" { parallel = 1 }
`
	}
	return b
}
