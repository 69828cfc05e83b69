package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/workloads/agentbin"
)

// Both byte orders of MIPS run under an emulator.
func TestMIPS(t *testing.T) {
	for arch, emulator := range map[string]string{"mips": "qemu-mips", "mipsle": "qemu-mipsel"} {
		t.Run(arch, func(t *testing.T) {
			dir := t.TempDir()
			path, script := filepath.Join(dir, "agent"), filepath.Join(dir, "run")
			if err := build(path, append(os.Environ(), agentbin.BuildEnv(arch)...)); err != nil {
				t.Fatal(err)
			}
			// 24Kc has no floating-point unit, as most routers have none.
			text := fmt.Sprintf("#!/bin/sh\nexec %s -cpu 24Kc %s \"$@\"\n", emulator, path)
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			run := func(args ...string) result {
				c := exec.CommandContext(t.Context(), script, args...)
				c.Env = append(os.Environ(), "KERNSWEEP_AGENT="+script)
				return finish(t, c)
			}
			if r := run("--self-test"); r.code != 0 || !strings.HasPrefix(r.stdout, "ok kernsweep-agent "+arch+" ") {
				t.Errorf("self-test: exit %d: %s%s", r.code, r.stdout, r.stderr)
			}
			r := run("run", "-sample", "100ms", "exec", "--", "sh", "-c", "echo hello; sleep 0.3")
			r.ended(t, "ok", "")
			if string(r.spool.Stdout) != "hello\n" || len(r.spool.Snapshots) < 3 {
				t.Errorf("stdout %q, %d samples", r.spool.Stdout, len(r.spool.Snapshots))
			}
			r = run("run", "crunch", "-work", "1", "-mode", "par")
			r.ended(t, "ok", "")
			if len(r.spool.Tasks) != 3 {
				t.Errorf("tasks %+v", r.spool.Tasks)
			}
		})
	}
}
