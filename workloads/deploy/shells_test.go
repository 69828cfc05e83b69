package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/workloads/wire"
)

// detachedShell starts a shell agent over a hostile task, in a session of its
// own and with nobody behind its output.
func detachedShell(t *testing.T, shell []string, dir string) (script, spool string, c *exec.Cmd) {
	t.Helper()
	script = filepath.Join(dir, "agent.sh")
	write(t, script, shellAgent)
	id, err := newSpool()
	if err != nil {
		t.Fatal(err)
	}
	spool = filepath.Join(dir, id)
	argv := append(append([]string{}, shell...), script, "run", "-keep", "-spool", spool, "-sample", "1s", "exec", "--", "sh", "-c", hostile)
	c = exec.Command(argv[0], argv[1:]...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill9(c) })
	s := &scene{Begun: filepath.Join(dir, "journal")}
	write(t, s.Begun, "target|"+spool+"|\n")
	await(t, "the task", func() bool { return len(s.marked()) >= 5 })
	return script, spool, c
}

// TestEveryShellEndsTasks: asked by the agent's own stop, and as a leftover.
func TestEveryShellEndsTasks(t *testing.T) {
	t.Parallel()
	for name, shell := range shells() {
		sh := func(t *testing.T, stdin string, args ...string) string {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			argv := append(append([]string{}, shell...), args...)
			c := exec.CommandContext(ctx, argv[0], argv[1:]...)
			c.Stdin = strings.NewReader(stdin)
			out, err := c.Output()
			if err != nil {
				t.Errorf("%v: %v", argv, err)
			}
			return string(out)
		}
		t.Run(name+"/stop", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script, spool, _ := detachedShell(t, shell, dir)
			sh(t, "", script, "stop", "-spool", spool)
			out := sh(t, "", script, "collect", "-keep", "-spool", spool, "-within", "1m", "-wait", "30s")
			s, err := wire.Read(strings.NewReader(out))
			if err != nil || s.End["status"] != "failed" || !strings.HasPrefix(out, "ended failed: exec: signal=9\n") {
				t.Errorf("%v, %.80q", err, out)
			}
			if left := (&scene{Begun: dir + "/journal"}).marked(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
		for _, dead := range []bool{false, true} {
			t.Run(name+"/leftover of a dead agent "+map[bool]string{true: "yes", false: "no"}[dead], func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				_, spool, c := detachedShell(t, shell, dir)
				if dead {
					kill9(c)
				}
				out := sh(t, leftoverScript, "-s", "--", "end", dir+"/kernsweep-000000000000.spool", "end", spool)
				if !strings.HasPrefix(out, "1 none \n2 ended ") || !strings.HasSuffix(out, "\ndone\n") || !strings.Contains(out, " exec -- sh -c ") {
					t.Errorf("it said %q", out)
				}
				if left := (&scene{Begun: dir + "/journal"}).marked(); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
				files, _ := filepath.Glob(spool + "*")
				if _, err := os.Stat("/proc/" + itoa(c.Process.Pid) + "/environ"); !dead && err == nil && startOf(c.Process.Pid) != "0" || len(files) > 0 {
					t.Errorf("the agent or its files are left: %v", files)
				}
			})
		}
	}
}
