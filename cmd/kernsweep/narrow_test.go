package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Kernels and workloads are named with commas between, as targets are.
func TestNarrowedWithCommas(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testbeds.hcl")
	text := strings.ReplaceAll(completedLab, "kernels = [kernel.cfs]", "kernels = [kernel.cfs, kernel.bfs, kernel.o1]") + `
kernel "bfs" {}
kernel "o1" {}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errw bytes.Buffer
	args := []string{"-f", file, "plan", "night", "--order", "--kernel", "cfs,bfs", "--workload", "crunch,crunch.ltm"}
	status := execute(t.Context(), args, strings.NewReader(""), &out, &errw, func(string) (string, bool) { return "", false })
	if status != 0 || !strings.Contains(out.String(), "bfs") || strings.Contains(out.String(), "o1") {
		t.Errorf("status %d\n%s%s", status, out.String(), errw.String())
	}
}
