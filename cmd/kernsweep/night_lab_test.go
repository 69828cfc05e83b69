package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets/targetstest"
)

// nightLimit bounds one whole run of the fake lab, on a busy machine.
const nightLimit = 3 * time.Minute

// night is a fake lab and the built program.
type night struct {
	program string
	lab     *targetstest.SimLab
	file    string // testbeds.hcl
	env     []string
	panics  string // machine on which the kernel other never boots; "" = none
}

// build builds the program once for a test and those below it.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kernsweep")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// newNight is a lab of machines; the sweep "night" of its configuration takes
// every one of them through two kernels.
func newNight(t *testing.T, program string, machines, blocks, repeat int) *night {
	t.Helper()
	n := &night{program: program, lab: targetstest.NewSimLab(t, machines), file: filepath.Join(t.TempDir(), "testbeds.hcl")}
	var names []string
	for _, m := range n.lab.Machines {
		names = append(names, "target."+m.Name)
	}
	text := n.lab.HCL() + fmt.Sprintf(`
sweep "night" {
  kernels  = [kernel.%s, kernel.%s]
  baseline = kernel.%s
  boots    = %d
  repeat   = %d
  warmup   = 0
  matrix {
    targets   = [%s]
    workloads = [workload.exec.work]
  }
}
`, targetstest.SimGood, targetstest.SimOther, targetstest.SimGood, blocks, repeat, strings.Join(names, ", "))
	if err := os.WriteFile(n.file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return n
}

// place is where one run of a night lies, with its leases.
type place struct{ runs, leases string }

func newPlace(t testing.TB) place {
	dir := t.TempDir()
	return place{filepath.Join(dir, "runs"), filepath.Join(dir, "leases")}
}

// process is a controller at work.
type process struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
	began    time.Time
	done     chan struct{} // closed when it has ended
}

// start starts the program.
func (n *night) start(t testing.TB, p place, args ...string) *process {
	t.Helper()
	c := &process{began: time.Now(), done: make(chan struct{})}
	c.cmd = exec.Command(n.program, append([]string{"-f", n.file, "--runs", p.runs}, args...)...)
	c.cmd.Env = append(append(os.Environ(), "KERNSWEEP_LEASES="+p.leases), n.env...)
	c.cmd.Stdout, c.cmd.Stderr = &c.out, &c.err
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = c.cmd.Wait() // the state says how it ended
		close(c.done)
	}()
	return c
}

// kill is kill -9 of the controller alone, as the kernel out of memory does it.
func (c *process) kill() {
	_ = syscall.Kill(c.cmd.Process.Pid, syscall.SIGKILL) // not reaped before done is closed
	<-c.done
}

// wait waits for the end; a controller that hangs fails the test.
func (c *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(nightLimit):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT)
		<-c.done
		t.Fatalf("%v is not over after %s:\n%s", c.cmd.Args, nightLimit, c.err.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

// records counts the journal's lines; 0 while there is no run.
func (p place) records() int {
	files, _ := filepath.Glob(filepath.Join(p.runs, "*", "journal.jsonl")) // the pattern is right
	if len(files) != 1 {
		return 0
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte{'\n'})
}

// killAt kills c at the moment, or when the journal has that many records,
// whichever is set and comes first. It says whether c was still at work.
func (c *process) killAt(p place, moment time.Duration, records int) bool {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(moment - time.Since(c.began))
	for {
		select {
		case <-c.done:
			return false
		case <-end:
			c.kill()
			return true
		case <-tick.C:
			if records > 0 && p.records() >= records {
				c.kill()
				return true
			}
		}
	}
}

// run is the one run of a place, nil while there is none.
func (p place) run(t testing.TB) *results.Run {
	t.Helper()
	names, err := results.List(p.runs)
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		return nil
	}
	if len(names) > 1 {
		t.Fatalf("%d runs: %v", len(names), names)
	}
	r, err := results.Open(filepath.Join(p.runs, names[0]))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// untilNone waits until look finds nothing, and returns what it found last.
func untilNone(ctx context.Context, limit time.Duration, look func() []string) []string {
	ctx, stop := context.WithTimeout(ctx, limit)
	defer stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		found := look()
		if len(found) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return found
		}
	}
}
