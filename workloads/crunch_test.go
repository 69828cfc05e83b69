package workloads

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"kernsweep/workloads/wire"
)

// builtAgent runs tasks under a freshly built agent on this machine.
type builtAgent struct{ bin string }

func buildAgent(t *testing.T) builtAgent {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "kernsweep/cmd/kernsweep-agent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return builtAgent{bin}
}

func (a builtAgent) Kind() string { return "go" }

func (a builtAgent) Run(ctx context.Context, t Task) error {
	spool := filepath.Join(t.Dir, t.Prefix+"spool.part")
	argv := []string{"run", "-spool", spool, "-sample", t.Sample.String(), "-deadline", t.Deadline.String()}
	cmd := exec.CommandContext(ctx, a.bin, append(argv, t.Argv...)...)
	cmd.Env = append(os.Environ(), t.Env...)
	out, err := os.Create(filepath.Join(t.Dir, t.Prefix+"spool"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd.Stdout = out
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return err
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s, err := wire.Read(out)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.Dir, t.Prefix+"stderr"), s.Stderr, 0o600)
}

// trial runs w once on this machine and parses what it left.
func trial(t *testing.T, a Agent, w Workload) (Parsed, error) {
	t.Helper()
	if err := w.Check(); err != nil {
		t.Fatal(err)
	}
	env := &Env{Target: Side{Agent: a}, Dir: t.TempDir(), Scale: 1, CPUs: 2, Deadline: 2 * time.Minute, Sample: time.Second}
	if p, ok := w.(Preparer); ok {
		if err := p.Prepare(t.Context(), env); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Run(t.Context(), env); err != nil {
		t.Fatal(err)
	}
	return w.Parse(os.DirFS(env.Dir))
}

// valueOf finds a metric; it must be there.
func valueOf(t *testing.T, p Parsed, name string) Value {
	t.Helper()
	for _, v := range p.Values {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no value %s in %+v", name, p.Values)
	return Value{}
}

// spooled makes the files of an attempt from records.
func spooled(t *testing.T, end string, write func(w *wire.Writer)) fstest.MapFS {
	t.Helper()
	var buf bytes.Buffer
	w, err := wire.NewWriter(&buf, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Write(wire.TypeBegin, 1, "", []byte("pid=1\nargv=test\n"))
	write(w)
	if end != "" {
		w.Write(wire.TypeEnd, 1e12, "", []byte(end))
	}
	return fstest.MapFS{"spool": {Data: buf.Bytes()}}
}

func putTask(w *wire.Writer, name string, startS, endS, userS float64) {
	w.Write(wire.TypeTask, int64(endS*1e9), name, wire.AppendTask(nil, wire.Task{Name: name, PID: 7,
		StartNS: int64(startS * 1e9), EndNS: int64(endS * 1e9), UserUS: int64(userS * 1e6), Involuntary: 5}))
}

func putStat(w *wire.Writer, atS float64, cpus ...string) {
	w.Write(wire.TypeStat, int64(atS*1e9), "", []byte("cpu  1 1 1 1\n"+strings.Join(cpus, " 1 1 1 1\n")+" 1 1 1 1\n"))
}

func putSwap(w *wire.Writer, atS float64, pages string) {
	w.Write(wire.TypeVMStat, int64(atS*1e9), "", []byte("pgpgin 1\npgpgout 1\npswpin "+pages+"\npswpout 0\n"))
}

func near(t *testing.T, v Value, want float64) {
	t.Helper()
	if v.Missing != "" || math.Abs(v.Value-want) > 1e-9 {
		t.Errorf("%s = %v (%s), want %v", v.Name, v.Value, v.Missing, want)
	}
}

func TestCrunchParse(t *testing.T) {
	c := &Crunch{Parallel: 3}
	p, err := c.Parse(spooled(t, "status=ok\n", func(w *wire.Writer) {
		putStat(w, 0, "cpu0", "cpu1")
		putTask(w, "LTMM", 1, 11, 9.8)
		putTask(w, "LTMB", 1, 14, 8)
		putTask(w, "LTBM", 1.5, 13.5, 8.4)
	}))
	if err != nil {
		t.Fatal(err)
	}
	near(t, valueOf(t, p, "LTMM.user"), 9.8)
	near(t, valueOf(t, p, "LTMB.wall"), 13)
	near(t, valueOf(t, p, "LTBM.share"), 70)
	near(t, valueOf(t, p, "LTBM.involuntary"), 5)
	near(t, valueOf(t, p, "total.user"), 26.2)
	near(t, valueOf(t, p, "makespan"), 13)
	if m := valueOf(t, p, "makespan"); !m.Primary || m.Better != LowerIsBetter {
		t.Errorf("%+v", m.Metric)
	}
	for _, v := range p.Values {
		if v.Name == "total.wall" {
			t.Error("the walls of tasks that ran at once were added up")
		}
	}
	// What cannot be, or is unfair, is said once: by the rules of orchestrator/validity.
	if len(p.Warnings) != 0 {
		t.Errorf("warnings %q", p.Warnings)
	}
}

func TestCrunchParseFailures(t *testing.T) {
	var failed *FailedError
	var invalid *InvalidError
	for _, c := range []struct {
		name, end, want string
		as              any
		write           func(w *wire.Writer)
	}{
		{"a task fails", "status=failed\nreason=LTMB: killed by signal 9\n", "LTMB: killed by signal 9", &failed, func(w *wire.Writer) { putTask(w, "LTMM", 0, 2, 2) }},
		{"too long", "status=timeout\n", "deadline", &failed, func(w *wire.Writer) {}},
		{"agent dies", "", "torn", &failed, func(w *wire.Writer) { putTask(w, "LTMM", 0, 2, 2) }},
		{"CPU unplugged", "status=ok\n", "set of CPUs changed", &invalid, func(w *wire.Writer) {
			putStat(w, 0, "cpu0", "cpu1")
			putStat(w, 5, "cpu0")
		}},
		{"swapping", "status=ok\n", "12 pages were swapped", &invalid, func(w *wire.Writer) {
			putSwap(w, 0, "30")
			putSwap(w, 5, "42")
		}},
	} {
		p, err := (&Crunch{}).Parse(spooled(t, c.end, c.write))
		if err == nil || !errors.As(err, c.as) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if v := valueOf(t, p, "makespan"); v.Missing == "" {
			t.Errorf("%s: makespan = %v", c.name, v.Value)
		}
	}
	if _, err := (&Crunch{}).Parse(fstest.MapFS{}); err == nil {
		t.Error("no spool, no error")
	}
}

func TestCrunchCheck(t *testing.T) {
	for _, c := range []Crunch{{Parallel: 2}, {Parallel: -1}, {Work: -5}, {Size: 3}, {Tasks: []string{"LTMX"}},
		{Tasks: []string{"LTMM", "LTMM"}}, {Tasks: []string{"LTMM"}, Parallel: 3}} {
		if c.Check() == nil {
			t.Errorf("%+v passed", c)
		}
	}
	if err := (&Crunch{Tasks: []string{"LTMM", "LTBM"}, Parallel: 2}).Check(); err != nil {
		t.Error(err)
	}
	if got := (&Crunch{Work: 1000}).work(0.0001); got != 1 {
		t.Errorf("work scaled to %d", got)
	}
}

func TestCrunchOnThisMachine(t *testing.T) {
	agent := buildAgent(t)
	for _, c := range []*Crunch{{Work: 100}, {Work: 100, Parallel: 3, Size: 128}} {
		p, err := trial(t, agent, c)
		if err != nil {
			t.Fatal(err)
		}
		makespan, sum := valueOf(t, p, "makespan").Value, 0.0
		for _, m := range c.Metrics() {
			if v := valueOf(t, p, m.Name); v.Missing != "" || v.Value < 0 {
				t.Errorf("%s: %v %s", m.Name, v.Value, v.Missing)
			} else if strings.HasSuffix(m.Name, ".wall") && !strings.HasPrefix(m.Name, "total") {
				sum += v.Value
				if v.Value > makespan {
					t.Errorf("%s of %v is longer than all together, %v", m.Name, v.Value, makespan)
				}
			}
		}
		if !c.atOnce() && sum > makespan {
			t.Errorf("one after another took %v, the sum is %v", makespan, sum)
		}
		if len(p.Notes) != 3 {
			t.Errorf("checksums: %q", p.Notes)
		}
	}
}
