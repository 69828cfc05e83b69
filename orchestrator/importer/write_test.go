package importer

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

func write(t *testing.T, m *Import) *results.Run {
	t.Helper()
	run, err := results.Create(t.TempDir(), m.Name(), results.RunMeta{Imported: m.Meta()}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Write(t.Context(), run, "test"); err != nil {
		t.Fatal(err)
	}
	return run
}

func state(t *testing.T, run *results.Run) *results.State {
	t.Helper()
	s, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Journal.Notes)+len(s.Journal.Doubtful) > 0 {
		t.Fatalf("journal: %v %v", s.Journal.Notes, s.Journal.Doubtful)
	}
	return s
}

func TestRunOfATable(t *testing.T) {
	text := "kernel,x_s\nA,1\nA,2\nB,3\n"
	m := must(t, Options{Format: "table", Note: "found in a drawer", DidNotBoot: []Dead{{"C", "panic"}}}, "t\n\x1b.csv|"+text)
	run := write(t, m)
	s := state(t, run)
	f := run.Meta.Imported.Files[0]
	kept, err := os.ReadFile(filepath.Join(run.Dir(), f.Kept))
	if err != nil || string(kept) != text || f.Kept != "imported/0001-t__.csv" || len(f.SHA256) != 64 {
		t.Errorf("kept %+v: %q, %v", f, kept, err)
	}
	boot := s.Model.Boot("imported", 1)
	if boot.Result.Record.Proven || boot.Result.Record.Unproven == "" || boot.Result.Outcome != results.OK {
		t.Errorf("%+v", boot.Result)
	}
	if b := s.Model.Boot("imported", 3); b == nil || b.Result.Outcome != results.BootFailed || b.Result.Reason != "panic" || b.Result.Kernel != "C" {
		t.Errorf("%+v", b)
	}
	cell := results.Cell{Target: "imported", Kernel: "A", Workload: "table.imported", Scenario: "default"}
	if v := s.Model.Values(cell, "x"); len(v.Boots) != 1 || fmt.Sprint(v.Boots[0].Values) != "[1 2]" || v.Resolution != 1 {
		t.Errorf("%+v", v)
	}
	if len(s.Plan.Cells) != 3 || s.Plan.Cells[2].NA != "" || s.Plan.Design.Order != "" || s.Plan.Cells[1].Baseline != "A" {
		t.Errorf("%+v", s.Plan)
	}
}

func TestWhichTrialsAreABoot(t *testing.T) {
	text := "kernel,boot,order,x_s\nA,1,1,1\nB,1,2,2\nB,2,3,2\nA,2,4,1\nA,2,5,1\n"
	for _, c := range []struct {
		boots string
		want  string // kernel, block and number of trials of each boot, in order
	}{
		{"", "A1:1 B1:1 B2:1 A2:2"},
		{BootsColumn, "A1:1 B1:1 B2:1 A2:2"},
		{BootsUnknown, "A1:3 B1:2"},
		{BootsEachFile, "A1:3 B1:2"},
		{BootsEachRow, "A1:1 B1:1 B2:1 A2:1 A3:1"},
	} {
		m := must(t, Options{Format: "table", Boots: c.boots}, "t|"+text)
		var got []string
		for i, b := range m.boots(fresh()) {
			got = append(got, fmt.Sprintf("%s%d:%d", b.kernel, b.block, len(b.trials)))
			if b.number != i+1 {
				t.Errorf("%s: boot %d has number %d", c.boots, i, b.number)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.boots, s, c.want)
		}
		if m.order() != "interleaved" {
			t.Errorf("order %q", m.order())
		}
	}
	if m := must(t, Options{Format: "table"}, "t|kernel,order,x_s\nB,3,1\nA,1,1\nA,2,1\n"); m.order() != "blocked" && len(m.boots(fresh())) == 2 {
		t.Errorf("order %q", m.order())
	}
}

// TestSeries: a long series of one boot is a few trials, whole.
func TestSeries(t *testing.T) {
	var b strings.Builder
	b.WriteString("kernel,x_us,y_us\n")
	for i := range 250 {
		y := fmt.Sprint(i)
		if i%2 > 0 {
			y = "na"
		}
		fmt.Fprintf(&b, "A,%d.5,%s\n", i, y)
	}
	b.WriteString("B,1,1\n")
	m := must(t, Options{Format: "table"}, "t|"+b.String())
	s := state(t, write(t, m))
	cell := results.Cell{Target: "imported", Kernel: "A", Workload: "table.imported", Scenario: "default"}
	if n := len(s.Model.TrialsOf(cell)); n != 1 {
		t.Errorf("%d trials", n)
	}
	x, y := s.Model.Values(cell, "x"), s.Model.Values(cell, "y")
	if len(x.Boots) != 1 || len(x.Boots[0].Values) != 250 || x.Boots[0].Values[249] != 249.5 || len(y.Boots[0].Values) != 125 {
		t.Errorf("%d of x, %d of y", len(x.Boots[0].Values), len(y.Boots[0].Values))
	}
	v, _ := s.Model.TrialsOf(cell)[0].Valid().Value("x")
	if v.Value != 125 || v.Resolution != 0.1 {
		t.Errorf("mean %v, step %v", v.Value, v.Resolution)
	}
}

// TestSeriesOfHugeNumbers: a mean that overflows in the adding is still a number.
func TestSeriesOfHugeNumbers(t *testing.T) {
	m := must(t, Options{Format: "table"}, "t|kernel,x_s\n"+strings.Repeat("A,1.5e308\n", 200))
	s := state(t, write(t, m))
	v, why := s.Model.Trials[0].Valid().Value("x")
	if why != "" || v.Value != 1.5e308 {
		t.Errorf("%v %s", v.Value, why)
	}
}

func TestLaterSession(t *testing.T) {
	run := write(t, must(t, Options{Format: "table", Target: "box"}, "a|kernel,x_s\nA,1\nB,2\n"))
	o := Options{Format: "table"}
	o.DefaultsFrom(run)
	if o.Target != "box" {
		t.Errorf("target %q", o.Target)
	}
	more := must(t, o, "b|kernel,x_s\nA,3\nC,4\n")
	if err := more.Add(t.Context(), run, "test"); err != nil {
		t.Fatal(err)
	}
	run, err := results.Open(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	s := state(t, run)
	v := s.Model.Values(results.Cell{Target: "box", Kernel: "A", Workload: "table.imported", Scenario: "default"}, "x")
	if len(v.Boots) != 2 || v.Boots[1].Boot != 3 || v.Boots[1].Session != 2 || v.Boots[1].Block != 2 {
		t.Errorf("%+v", v.Boots)
	}
	if len(run.Meta.Imported.Files) != 2 || run.Meta.Imported.Files[1].Kept != "imported/0002-b" {
		t.Errorf("%+v", run.Meta.Imported)
	}
	if i := slices.IndexFunc(s.Plan.Cells, func(c results.PlannedCell) bool { return c.Kernel == "C" }); i < 0 || s.Plan.Cells[i].Baseline != "A" {
		t.Errorf("%+v", s.Plan.Cells)
	}
	before, err := os.ReadFile(filepath.Join(run.Dir(), "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, want string
	}{
		{"b|kernel,x_s\nA,3\nC,4\n", "b is in run " + run.Name() + " already"},
		{"c|kernel,x_ms\nA,3\n", `x of table.imported is in "ms" here and in "s" in the run`},
	} {
		if err := must(t, o, c.text).Add(t.Context(), run, "test"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	after, err := os.ReadFile(filepath.Join(run.Dir(), "journal.jsonl"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("a refused session left records: %v", err)
	}
	// A session that cannot be recorded leaves the run as it was, and can come again.
	ended, stop := context.WithCancel(t.Context())
	stop()
	late := func() *Import { return must(t, o, "late|kernel,x_s\nA,3\nD,4\n") }
	w, err := run.OpenWriter("test")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := func() string {
		var all []string
		err := filepath.WalkDir(run.Dir(), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				b, rerr := os.ReadFile(path)
				all, err = append(all, path+" "+string(b)), rerr
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	was := whole()
	if err := late().session(ended, run, w); err == nil {
		t.Error("a closed journal took a session")
	}
	if now := whole(); now != was {
		t.Errorf("half a session stayed:\n%s\nwas:\n%s", now, was)
	}
	if err := late().Add(t.Context(), run, "test"); err != nil || len(run.Meta.Imported.Files) != 3 {
		t.Errorf("%v, %d files", err, len(run.Meta.Imported.Files))
	}
	measured, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := more.Add(t.Context(), measured, "test"); err == nil || !strings.Contains(err.Error(), "was measured, not imported") {
		t.Errorf("%v", err)
	}
}

// TestActivityOfTrials: vmstat text belongs to trials that are there.
func TestActivityOfTrials(t *testing.T) {
	run := write(t, must(t, Options{Format: "iperf", Workload: "iperf.x"}, "K=a|"+row("  3", "0.0-10.0", "27.4 MBytes  23.0 Mbits/sec")+row("  3", "0.0-10.0", "27.3 MBytes  22.9 Mbits/sec")))
	vm := func(cs int) string {
		return vmHead + strings.Repeat(fmt.Sprintf(" 1  0      0   9000    600   4100    0    0     0     0  900 %d 30 10 60  0\n", cs), 3)
	}
	o := Options{Format: "vmstat", Workload: "iperf.x"}
	for _, c := range []struct {
		o     Options
		files []string
		want  string
	}{
		{o, []string{"K=v|" + vm(1)}, "has 2 trials without an activity, and you name 1 vmstat file"},
		{Options{Format: "vmstat", Workload: "iperf.y"}, []string{"K=v|" + vm(1)}, "no trial of imported/K/iperf.y.default without an activity; it has trials of: imported/K/iperf.x.default"},
	} {
		if err := must(t, c.o, c.files...).Add(t.Context(), run, "test"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := must(t, o, "K=v1|"+vm(100), "K=v2|"+vm(200)).Add(t.Context(), run, "test"); err != nil {
		t.Fatal(err)
	}
	s := state(t, run)
	if len(s.Model.Trials) != 2 || len(s.Model.Boots) != 1 {
		t.Fatalf("%d trials, %d boots", len(s.Model.Trials), len(s.Model.Boots))
	}
	for i, tr := range s.Model.Trials {
		a := tr.Valid()
		if v, why := a.Value("throughput"); len(tr.Attempts) != 1 || a.Summary.Switches != float64(100*(i+1)) || why != "" || v.Value < 22 {
			t.Errorf("%+v %+v", a, a.Summary)
		}
	}
	alone, err := results.Create(t.TempDir(), "s", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := must(t, o, "K=v|"+vm(1)).Write(t.Context(), alone, "test"); err == nil || !strings.Contains(err.Error(), "name their run with --run") {
		t.Errorf("%v", err)
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"plain": "1", "a=b": "2"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	var got []string
	for _, args := range [][]string{{"K=plain", "a=b", "S=-"}, {"K=a=b"}} {
		files, err := Open(args, strings.NewReader("3"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			got = append(got, f.Kernel+"<"+f.Name+">"+string(f.Data))
		}
	}
	if s := strings.Join(got, " "); s != "K<plain>1 <a=b>2 S<->3 K<a=b>2" {
		t.Error(s)
	}
	if err := os.Symlink("plain", "link"); err != nil {
		t.Fatal(err)
	}
	for _, same := range []string{"./plain", filepath.Join(dir, "plain"), "link"} {
		if _, err := Open([]string{"K=plain", same}, nil); err == nil || !strings.Contains(err.Error(), "is a file that is named already (plain)") {
			t.Errorf("%s beside plain: %v", same, err)
		}
	}
	for arg, want := range map[string]string{".": ". is a folder: name the files in it", "none": "none: there is no such file", "/dev/null": "/dev/null is no plain file",
		"=plain": "before the \"=\" stands a kernel: a name is empty", "K=": "a file's name is empty", "no\nne": `"no\nne": there is no such file`} {
		if _, err := Open([]string{arg}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", arg, err, want)
		}
	}
}
