package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzLoad: no input ends the program, and no text that comes back holds a
// control character.
func FuzzLoad(f *testing.F) {
	f.Add(fullLab)
	paths, _ := filepath.Glob("testdata/*.txtar")
	more, _ := filepath.Glob("testdata/drivers/*.txtar")
	paths = append(paths, more...)
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, k := range bombs {
		if k == "late" {
			continue // large
		}
		f.Add(bomb(k, 150))
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := filepath.Join(t.TempDir(), "lab.hcl")
		if err := os.WriteFile(name, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, d := range []drivers{testDrivers(), allDrivers()} {
			lab, ds := load(name, nil, testEnv, d)
			if (lab == nil) != ds.HasErrors() {
				t.Error("a lab goes with no errors, and only then")
			}
			for _, line := range strings.Split(ds.String(), "\n") {
				if strings.ContainsFunc(line, badControl) {
					t.Errorf("control character in %q", line)
				}
			}
		}
		again := Format(Format([]byte(s)))
		if string(again) != string(Format([]byte(s))) {
			t.Error("Format is not stable")
		}
	})
}

func bigLab(n int) string {
	var b strings.Builder
	b.WriteString("class \"router\" {\n  ssh {\n    user = \"root\"\n  }\n  boot \"whole\" {\n    nic {\n      model = \"x\"\n    }\n  }\n}\n")
	b.WriteString("kernel \"a\" {}\nkernel \"b\" {}\nworkload \"work\" \"w\" {\n  tool = \"t\"\n}\n")
	for i := range n {
		fmt.Fprintf(&b, "target \"t%d\" {\n  class = class.router\n  host  = \"10.%d.%d.%d\"\n  power \"strip\" {\n    pdu    = \"p\"\n    outlet = \"%d\"\n  }\n}\n", i, i>>16, i>>8&255, i&255, i)
	}
	b.WriteString("sweep \"s\" {\n  kernels = [kernel.a, kernel.b]\n  matrix {\n    targets = [")
	for i := range n {
		fmt.Fprintf(&b, "target.t%d, ", i)
	}
	b.WriteString("]\n    workloads = [workload.work.w]\n  }\n}\n")
	return b.String()
}

// BenchmarkLoad reads a lab of 1,000 targets.
func BenchmarkLoad(b *testing.B) {
	name := filepath.Join(b.TempDir(), "lab.hcl")
	if err := os.WriteFile(name, []byte(bigLab(1000)), 0o644); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if lab, ds := load(name, nil, testEnv, testDrivers()); lab == nil {
			b.Fatal(ds)
		}
	}
}
