package importer

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

func read(t *testing.T, o Options, texts ...string) (*Import, error) {
	t.Helper()
	var files []File
	for i, s := range texts {
		name, text, _ := strings.Cut(s, "|")
		kernel := ""
		if k, rest, ok := strings.Cut(name, "="); ok {
			kernel, name = k, rest
		}
		if name == "" {
			name = fmt.Sprintf("f%d", i)
		}
		files = append(files, File{Name: name, Kernel: kernel, Data: []byte(text)})
	}
	return Read(o, files)
}

func must(t *testing.T, o Options, texts ...string) *Import {
	t.Helper()
	m, err := read(t, o, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// said is what each trial holds, in short: "CFS j1: a=1 b=n/a".
func said(m *Import) []string {
	var out []string
	for i := range m.trials {
		t := &m.trials[i]
		c := m.cells[t.cell]
		s := c.Kernel + " " + c.Scenario + ":"
		for _, v := range m.of(t) {
			if s += " " + m.metric[v.metric].Name + "="; v.why != 0 {
				s += "n/a"
			} else {
				s += fmt.Sprint(v.v)
			}
		}
		if !t.ok() {
			s += " " + string(t.more.outcome)
		}
		out = append(out, s)
	}
	return out
}

func TestTables(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"tabs", "kernel\tx_s\nA\t1.5\nB\tna\nB\t2\n", "A default: x=1.5|B default: x=2"},
		{"commas and quotes", "kernel,\"max lat_ms\"\n\"A, 1\",3\n", "A, 1 default: max lat=3"},
		{"semicolons and decimal commas", "Kernel;x_s\r\nA;1,5\r\n", "A default: x=1.5"},
		{"blanks", "# made by hand\nKERNEL x_s\nA  1e3\n", "A default: x=1000"},
		{"byte order mark", "\ufeffkernel,x_s\nA,1\n", "A default: x=1"},
		{"UTF-16", wideText("kernel\tx_s\nA\t1\n"), "A default: x=1"},
		{"old line ends", "kernel,x_s\rA,1\r", "A default: x=1"},
		{"tasks of one trial", "kernel,scenario,task,repeat,user_s,wall_s\nA,j2,P,1,1,2\nA,j2,Q,1,3,4\nA,j2,P,2,5,6\n",
			"A j2: P.user=1 P.wall=2 Q.user=3 Q.wall=4|A j2: P.user=5 P.wall=6"},
		{"tasks that nobody counts", "kernel,task,x_s\nA,P,1\nA,Q,2\nA,P,3\n", "A default: P.x=1 Q.x=2|A default: P.x=3"},
		{"long form", "kernel,metric,value,unit,better\nA,score,10,pts,higher\nA,p99,3,ms,lower\nA,score,11,pts,higher\n",
			"A default: score=10 p99=3|A default: score=11"},
		{"repeats from 0", "kernel,run,x_s\nA,0,1\nA,1,2\n", "A default: x=1|A default: x=2"},
		{"some of it missing", "kernel,x_s,y_s\nA,-,2\n", "A default: x=n/a y=2"},
		{"one kernel with two schedulers", "kernel,scheduler,x_s\n2.6,CFS,1\n2.6,BFS,2\n", "2.6 CFS default: x=1|2.6 BFS default: x=2"},
		{"two kernels with a scheduler each", "kernel,scheduler,x_s\n2.6,CFS,1\n2.6-ck,BFS,2\n", "2.6 default: x=1|2.6-ck default: x=2"},
		{"a column of words", "kernel,x_s,remark\nA,1,fine\n", "A default: x=1"},
	} {
		m, err := read(t, Options{Format: "table"}, "t|"+c.text)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(said(m), "|"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func wideText(s string) string {
	b := []byte{0xff, 0xfe}
	for _, r := range s {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}

func TestTablesThatAreRefused(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"kernel,x_s\nA,1\nB", `t:3: 1 fields where the first line names 2 columns: "B"`},
		{"kernel\tx_s\nA\t1,234\n", `t:2: column x_s: "1,234" is ambiguous`},
		{"kernel\tx_s\nA\t1,234.5\n", `t:2: column x_s: "1,234.5" has separators`},
		{"kernel,x_s\nA,1e400\n", `t:2: column x_s: "1e400" is too large`},
		{"kernel,x_s\nA,1\nA,fast\n", `t:3: column x_s: "fast" is no number`},
		{"kernel,x_s\nA,fast\n", `t:2: column x_s: "fast" is no number`},
		{"kernel,x_s\nA,0x10\n", `"0x10" is no number`},
		{"kernel,x_s\nA,1_000\n", `"1_000" is no number`},
		{"1,2\n3,4\n", `t:1: the first line must name the columns`},
		{"x_s\n1\n", "no column kernel, scheduler or variant"},
		{"kernel,kernel,x_s\nA,A,1\n", `two columns are named "kernel"`},
		{"kernel,machine,target,x_s\nA,m,t,1\n", `columns "machine" and "target" say the same thing`},
		{"kernel,metric\nA,x\n", "only one of them"},
		{"kernel,repeat,x_s\nA,1,1\nA,1,2\n", "t:3: this trial stands on line 2 already"},
		{"kernel,repeat,x_s\nA,first,1\n", `column repeat: "first" is no number of a trial`},
		{"kernel,task,repeat,x_s\nA,P,1,1\nA,P,1,2\n", "t:3: P.x of this trial stands on line 2 already"},
		{"kernel,metric,value,unit\nA,x,1,s\nB,x,1,ms\n", `t:3: x is in "ms" here and was in "s" before`},
		{"kernel,metric,value,unit,better\nA,x,1,s,up\n", `t:2: "up" is no direction`},
		{"kernel,boot,x_s\nA,,1\n", "column boot is empty in this row"},
		{"kernel,x_s\n,1\n", "the kernel's name: a name is empty"},
		{"kernel,x_s\n\x1b[31mA,1\n", "control character"},
		{"kernel,x_s\n\"A,1\n", "t:2: column 6:"},
		{"kernel,x_s\n", "hold no figure at all"},
		{"", "the file is empty"},
		{"\x1f\x8b\x08 kernel", "compressed"},
		{"kernel,x_s\nA,\x00\n", "this is no text: a NUL byte at offset 13"},
	} {
		_, err := read(t, Options{Format: "table"}, "t|"+c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func TestUnitsAndDirections(t *testing.T) {
	for name, want := range map[string]workloads.Metric{
		"user_s":         {Name: "user", Unit: "s", Better: workloads.LowerIsBetter},
		"max_lat_ms":     {Name: "max_lat", Unit: "ms", Better: workloads.LowerIsBetter},
		"runtime_rel":    {Name: "runtime", Unit: "% of the baseline", Better: workloads.LowerIsBetter},
		"down_mbps":      {Name: "down", Unit: "Mbit/s", Better: workloads.HigherIsBetter},
		"Time (s)":       {Name: "Time", Unit: "s", Better: workloads.LowerIsBetter},
		"throughput":     {Name: "throughput", Better: workloads.HigherIsBetter},
		"temperature":    {Name: "temperature", Better: workloads.Informative},
		"context_count":  {Name: "context", Unit: "count", Better: workloads.Informative},
		"cpu_pct":        {Name: "cpu", Unit: "%", Better: workloads.Informative},
		"_s":             {Name: "_s", Better: workloads.Informative},
		"elapsed":        {Name: "elapsed", Better: workloads.LowerIsBetter},
		"seconds":        {Name: "seconds", Unit: "s", Better: workloads.LowerIsBetter},
		"transactions/s": {Name: "transactions/s", Better: workloads.Informative},
	} {
		if got := metricByName(name); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for s, want := range map[string][2]float64{"1.50": {1.5, 0.01}, "12": {12, 1}, "1e3": {1000, 1000}, "-0.5": {-0.5, 0.1}, "3.5e-3": {0.0035, 0.0001}, "99%": {99, 1}, ",5": {0.5, 0.1}} {
		v, step, err := number(s)
		if err != nil || math.Abs(v-want[0]) > 1e-12 || math.Abs(step-want[1]) > 1e-12 {
			t.Errorf("%s: %v step %v, %v", s, v, step, err)
		}
	}
}

func TestFlagsOfMetrics(t *testing.T) {
	text := "t|kernel,score,x_s\nA,1,2\nB,2,3\n"
	m := must(t, Options{Format: "table", Better: map[string]workloads.Direction{"score": workloads.HigherIsBetter}, Primary: "x", Baseline: "B"}, text)
	if m.metric[0].Better != workloads.HigherIsBetter || m.metric[0].Primary || !m.metric[1].Primary || m.o.Baseline != "B" {
		t.Errorf("%+v, baseline %s", m.metric, m.o.Baseline)
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Primary: "z"}, "--primary z: table.imported has no such metric; there are: score, x"},
		{Options{Better: map[string]workloads.Direction{"z": workloads.LowerIsBetter}}, "--better z: there is no such metric"},
		{Options{Baseline: "z"}, "--baseline z: the files have no such kernel; there are: A, B"},
		{Options{Boots: "column"}, "the table has no column boot"},
		{Options{Boots: "all"}, "--boots all: there are unknown"},
		{Options{Workload: "crunch"}, "write KIND.NAME"},
		{Options{Name: "a\nb"}, "--name: \"a\\nb\" has a control character"},
		{Options{Runs: -1}, "--runs-per-average -1"},
		{Options{FirstRow: "x"}, "--first-row x"},
		{Options{DidNotBoot: []Dead{{"A", "hung"}}}, "--did-not-boot A: the files have figures of it"},
		{Options{Format: "nosuch"}, "there are: iperf, kernbench, time, vmstat, table"},
	} {
		if c.o.Format == "" {
			c.o.Format = "table"
		}
		if _, err := read(t, c.o, text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
}

func TestDuplicateFiles(t *testing.T) {
	text := "kernel,x_s\nA,1\n"
	if _, err := read(t, Options{Format: "table"}, "t|"+text, "t|"+text); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Errorf("one name twice: %v", err)
	}
	m := must(t, Options{Format: "table"}, "t|"+text, "u|"+text)
	if len(m.notes) != 1 || !strings.Contains(m.notes[0], "t and u hold the same bytes") {
		t.Errorf("equal bytes: %v", m.notes)
	}
}

func TestBrokenFilesOfSeveral(t *testing.T) {
	_, err := read(t, Options{Format: "table"}, "good|kernel,x_s\nA,1\n", "bad|kernel,x_s\nA\n", "worse|")
	if err == nil || !strings.Contains(err.Error(), "bad:2:") || !strings.Contains(err.Error(), "worse: the file is empty") ||
		!strings.Contains(err.Error(), "2 of 3 files cannot be read; nothing was imported") || strings.Contains(err.Error(), "good") {
		t.Errorf("%v", err)
	}
}

func TestSchedulerColumn(t *testing.T) {
	m := must(t, Options{Format: "table"}, "t|scheduler,x_s\nBFS v230,1\nO(1),2\n")
	if x := m.told["BFS v230"].schedulerFound(); x.Name != "bfs" || x.Detail != "v230" || len(x.Evidence) != 1 {
		t.Errorf("%+v", x)
	}
	if x := m.told["O(1)"].schedulerFound(); x.Name != "" {
		t.Errorf("guessed %+v", x)
	}
}

// TestCrunchSums: the sums that a table of tasks stands for.
func TestCrunchSums(t *testing.T) {
	m := must(t, Options{Format: "table", Workload: "crunch.x"},
		"t|kernel,scenario,repeat,task,user_s,wall_s\nA,j1,1,P,1.25,2\nA,j1,1,Q,2.50,3\nA,j2,1,P,1,4\nA,j2,1,Q,2,5\nA,j2,2,P,1,4\nA,odd,1,P,1,4\nA,odd,1,Q,1,4\n")
	want := []struct {
		trial int
		name  string
		v     float64
		why   string
	}{
		{0, "total.user", 3.75, ""}, {0, "total.wall", 5, ""}, {0, "makespan", 5, ""}, {0, "P.share", 62.5, ""},
		{1, "total.wall", 9, ""}, {1, "makespan", 5, ""},
		{2, "total.user", 0, "this repeat has no figure of Q"}, {2, "makespan", 0, "this repeat has no figure of Q"},
		{3, "makespan", 0, "whether the tasks ran at once is not known"},
	}
	for _, w := range want {
		found := false
		for _, v := range m.of(&m.trials[w.trial]) {
			if m.metric[v.metric].Name == w.name {
				found = true
				if v.v != w.v || m.names[v.why] != w.why {
					t.Errorf("trial %d: %s = %v (%s), want %v (%s)", w.trial, w.name, v.v, m.names[v.why], w.v, w.why)
				}
			}
		}
		if !found {
			t.Errorf("trial %d has no %s", w.trial, w.name)
		}
	}
	for _, v := range m.of(&m.trials[1]) {
		if x := m.metric[v.metric]; x.Name == "total.wall" && x.Better != workloads.Informative {
			t.Errorf("a sum of walls of tasks at once is compared: %+v", x)
		}
	}
}

func TestLatenciesThatAreAPhase(t *testing.T) {
	m := must(t, Options{Format: "table", Workload: "latency.x"}, "t|kernel,max_lat_ms,avg_lat_ms,stddev_ms\nA,1000,500,289\nB,1000,100,120\n")
	if a := m.trials[0].more; a == nil || len(a.warnings) != 1 || !strings.Contains(a.warnings[0], "sd/mean = 0.578") {
		t.Errorf("uniform: %+v", a)
	}
	if m.trials[1].more != nil {
		t.Errorf("not uniform: %+v", m.trials[1].more)
	}
	if !m.metric[1].Primary {
		t.Errorf("the mean is not primary: %+v", m.metric)
	}
}

// FuzzTable: whatever the text, a table is read or refused, and what is read can
// be laid out.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"kernel,x_s\nA,1\n", "kernel\tmetric\tvalue\nA\tx\t1\n", "kernel,task,repeat,boot,order,u_s\nA,P,1,b,2,3\n", "kernel;x\nA;1,5\n", "kernel x\nA 1\n", "kernel,\"x\"\n\"A\n\",1\n", "scheduler,scenario,repeat\nA,,0\n"} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, text string, boots int) {
		o := Options{Format: "table", Boots: []string{"", BootsUnknown, BootsEachFile, BootsEachRow}[boots&3], Workload: []string{"table.x", "crunch.x", "latency.x"}[(boots>>2&0xff)%3]}
		m, err := Read(o, []File{{Name: "t", Data: []byte(text)}})
		if err != nil {
			return
		}
		m.Describe()
		for _, b := range m.boots(fresh()) {
			seen := map[results.SlotKey]bool{}
			for _, r := range m.records(b) {
				if r.Slot == nil {
					continue
				}
				if seen[r.Slot.Key()] || r.Slot.Repeat < 1 {
					t.Fatalf("slot %+v twice, or a warm-up", r.Slot)
				}
				seen[r.Slot.Key()] = true
				for _, v := range r.Parsed.Values {
					if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
						t.Fatalf("%+v", v)
					}
				}
				if _, err := results.EncodeLine(r); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
