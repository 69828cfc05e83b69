package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/workloads/agentbin"
)

// Law 2: what the agent must not contain, and how large it may be.
func TestTheAgentsDependencies(t *testing.T) {
	for _, arch := range agentbin.Arches() {
		c := exec.Command("go", "list", "-deps", ".")
		c.Env = append(os.Environ(), agentbin.BuildEnv(arch)...)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		for _, pkg := range strings.Fields(string(out)) {
			first, _, _ := strings.Cut(pkg, "/")
			switch {
			case pkg == "fmt", pkg == "reflect", pkg == "net", pkg == "encoding/json", pkg == "context", pkg == "os/exec", pkg == "os/signal",
				strings.HasPrefix(pkg, "net/"), strings.HasPrefix(pkg, "compress/"), first == "crypto", strings.Contains(first, "."):
				t.Errorf("%s: the agent contains %s", arch, pkg)
			}
		}
	}
}

func TestTheMIPSAgentsSize(t *testing.T) {
	const most, mostZipped = 2_000_000, 750_000
	for _, arch := range []string{"mips", "mipsle"} {
		path := filepath.Join(t.TempDir(), "agent")
		if err := build(path, append(os.Environ(), agentbin.BuildEnv(arch)...)); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var z bytes.Buffer
		w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if len(raw) > most || z.Len() > mostZipped {
			t.Errorf("%s: %d bytes, %d gzipped; at most %d and %d", arch, len(raw), z.Len(), most, mostZipped)
		}
		t.Logf("%s: %d bytes, %d gzipped", arch, len(raw), z.Len())
	}
}
