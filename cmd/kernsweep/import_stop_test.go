package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// An interruption ends an import that reads, and no run is made.
func TestInterruptedImport(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(table, []byte("kernel,x_s\nA,1\nB,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, open := io.Pipe() // whose other end says nothing
	defer open.Close()
	for _, file := range []string{"-", table} {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		runs := filepath.Join(dir, "runs")
		var out, errs bytes.Buffer
		if status := execute(ctx, []string{"--runs", runs, "import", "table", file}, in, &out, &errs, os.LookupEnv); status != exitInterrupted || out.Len() > 0 {
			t.Errorf("%s: status %d, %q %q", file, status, &out, &errs)
		}
		if list, err := os.ReadDir(runs); err == nil && len(list) > 0 {
			t.Errorf("%s: %v", file, list)
		}
	}
}
