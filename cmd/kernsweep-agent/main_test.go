package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kernsweep/targets/targetstest"
	"kernsweep/workloads/agentbin"
	"kernsweep/workloads/wire"
)

// agentPath is where TestMain put the agent, built for this machine.
func agentPath() string { return os.Getenv("TEST_AGENT") }

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "agent")
	if err := build(path, os.Environ()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("TEST_AGENT", path)
	return m.Run()
}

func build(path string, env []string) error {
	c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
	c.Env = append(env, "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// result is what an agent left.
type result struct {
	stdout, stderr string
	code           int
	spool          *wire.Spool // of stdout, after a ready line
	err            error       // of reading it
}

func runAgent(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return finish(t, exec.CommandContext(ctx, agentPath(), args...))
}

func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	r := result{stdout: out.String(), stderr: errs.String(), code: c.ProcessState.ExitCode()}
	r.spool, r.err = wire.Read(strings.NewReader(strings.TrimPrefix(r.stdout, "ready\n")))
	return r
}

// ended checks the end record.
func (r result) ended(t *testing.T, status, reason string) {
	t.Helper()
	if r.code != 0 || r.err != nil {
		t.Fatalf("exit %d, spool: %v\n%s%s", r.code, r.err, r.stderr, r.stdout)
	}
	if r.spool.End["status"] != status || !strings.Contains(r.spool.End["reason"], reason) {
		t.Errorf("end %v, want status %s and reason %q", r.spool.End, status, reason)
	}
}

func TestSelfTest(t *testing.T) {
	r := runAgent(t, "--self-test")
	if r.code != 0 || !strings.HasPrefix(r.stdout, "ok kernsweep-agent ") {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
}

func TestExecRecordsWhatACommandDid(t *testing.T) {
	r := runAgent(t, "run", "-sample", "100ms", "-env", "X=1", "-env", "X=2", "exec", "--", "sh", "-c",
		`echo "$X $LC_ALL"; echo two >&2; sleep 0.55; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done`)
	r.ended(t, "ok", "")
	if string(r.spool.Stdout) != "2 C\n" || string(r.spool.Stderr) != "two\n" {
		t.Errorf("stdout %q, stderr %q", r.spool.Stdout, r.spool.Stderr)
	}
	if n := len(r.spool.Snapshots); n < 6 || n > 60 {
		t.Errorf("%d samples in about 0.7 s, every 0.1 s", n)
	}
	task := r.spool.Tasks[0]
	if task.Name != "exec" || task.UserUS < 1000 || task.MaxRSSKB < 100 || task.Voluntary < 1 ||
		task.EndNS-task.StartNS < 550e6 || len(task.Missing) != 0 {
		t.Errorf("task %+v", task)
	}
	for _, key := range []string{"pid", "start", "boot_id", "wall", "argv", "agent"} {
		if r.spool.Begin[key] == "" {
			t.Errorf("begin record has no %s: %v", key, r.spool.Begin)
		}
	}
	for _, key := range []string{"rss_kb", "cpu_us", "wall"} {
		if n, err := strconv.ParseInt(r.spool.End[key], 10, 64); err != nil || n <= 0 {
			t.Errorf("end record: %s=%q", key, r.spool.End[key])
		}
	}
	if left, _ := filepath.Glob("/dev/shm/kernsweep-" + r.spool.Begin["pid"] + ".spool*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFailuresStillGiveAWholeSpool(t *testing.T) {
	runAgent(t, "run", "exec", "--", "/no/such").ended(t, "failed", "/no/such: cannot be started")
	runAgent(t, "run", "exec", "--", "no-such-tool").ended(t, "failed", "not found in PATH")
	runAgent(t, "run", "exec", "--", "sh", "-c", "kill -SEGV $$").ended(t, "failed", "killed by signal 11 (segmentation fault)")
	runAgent(t, "run", "exec").ended(t, "failed", "no command given")
	runAgent(t, "run", "dance").ended(t, "failed", `no task "dance"`)
}

func TestMistakesAreRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"dance"}, {"run"}, {"run", "-sample"}, {"run", "-sample", "x", "exec"}, {"run", "-zap", "1", "exec"},
		{"run", "-listen", "70000", "exec"}, {"run", "-sample", "-1s", "exec"}, {"run", "-spool", "/no/such/dir/s", "exec"},
		{"run", "-env", "X", "exec"}, {"collect"}, {"collect", "-spool", "/no/such"}, {"stop"}, {"child", "dance"}} {
		if r := runAgent(t, args...); r.code != 2 || !strings.HasPrefix(r.stderr, "kernsweep-agent: ") {
			t.Errorf("%q: exit %d, stderr %q", args, r.code, r.stderr)
		}
	}
}

func TestOutputIsCappedAndDrained(t *testing.T) {
	cmd := []string{"exec", "--", "sh", "-c", "head -c 3000000 /dev/zero; head -c 100 /dev/zero >&2; echo end >&2"}
	r := runAgent(t, append([]string{"run", "-cap", "200000"}, cmd...)...)
	r.ended(t, "ok", "")
	if len(r.spool.Stdout) != 200000 || len(r.spool.Stderr) != 104 {
		t.Errorf("%d and %d bytes", len(r.spool.Stdout), len(r.spool.Stderr))
	}
	if notes := strings.Join(r.spool.Notes, "\n"); !strings.Contains(notes, "stdout truncated at 200000 bytes") || strings.Contains(notes, "stderr") {
		t.Errorf("notes %q", notes)
	}
	start := time.Now()
	runAgent(t, "run", "-cap", "1000", "-overflow", "end", "exec", "--", "sh", "-c", "cat /dev/zero").ended(t, "failed", "stdout passed 1000 bytes")
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("endless output was ended after %v", d)
	}
	r = runAgent(t, append([]string{"run", "-limit", "100000"}, cmd...)...)
	r.ended(t, "ok", "")
	if len(r.stdout) > 170000 || !strings.Contains(strings.Join(r.spool.Notes, "\n"), "the spool is full") {
		t.Errorf("%d bytes of spool, notes %q", len(r.stdout), r.spool.Notes)
	}
}

func TestDeadlinesEndTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	stubborn := `trap '' TERM HUP; (trap '' TERM; echo $$ >` + dir + `/child; sleep 77) & setsid sleep 78 & sleep 79; sleep 80`
	start := time.Now()
	r := runAgent(t, "run", "-deadline", "300ms", "exec", "--", "sh", "-c", stubborn)
	r.ended(t, "timeout", "still running after 300ms")
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	if task := r.spool.Tasks[0]; !task.TimedOut || task.Signal == 0 {
		t.Errorf("task %+v", task)
	}
	out, _ := exec.Command(targetstest.Tool(t, "pgrep"), "-fx", "sleep (77|78|79|80)").Output()
	if len(out) > 0 {
		t.Errorf("still running: %s", out)
	}
	r = runAgent(t, "run", "-stop-after", "200ms", "exec", "--", "sleep", "60")
	r.ended(t, "stopped", "")
	if task := r.spool.Tasks[0]; !task.Stopped || task.Signal != 15 {
		t.Errorf("task %+v", task)
	}
}

func TestWhatATaskLeavesRunningIsEnded(t *testing.T) {
	start := time.Now()
	r := runAgent(t, "run", "exec", "--", "sh", "-c", "setsid sleep 76 & sleep 75 & echo started")
	r.ended(t, "ok", "")
	if notes := strings.Join(r.spool.Notes, "\n"); !strings.Contains(notes, "ended what the task left running: ") {
		t.Errorf("notes %q", notes)
	}
	if out, _ := exec.Command(targetstest.Tool(t, "pgrep"), "-fx", "sleep (75|76)").Output(); len(out) > 0 || time.Since(start) > 10*time.Second {
		t.Errorf("after %v still running: %q", time.Since(start), out)
	}
}

func TestAgentsExistForAllArchitectures(t *testing.T) {
	if len(agentbin.Arches()) != 9 {
		t.Errorf("%v", agentbin.Arches())
	}
}
