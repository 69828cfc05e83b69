package workloads

import (
	"io/fs"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// execTrial is what a trial of a command left: its spool says how it ended.
func execTrial(agent, task, status, reason, stdout, stderr string) fs.FS {
	spool := "kernsweep-spool 1\n" + spoolRecord("begin", "", "pid=7\nagent="+agent+"\n") + spoolRecord("task", "exec", task) +
		spoolRecord("end", "", "status="+status+"\nreason="+reason+"\n")
	return fstest.MapFS{"spool": {Data: []byte(spool)}, "stdout": {Data: []byte(stdout)}, "stderr": {Data: []byte(stderr)}}
}

const wholeTask = "pid=9\nexit=0\nstart_ns=1000000000\nend_ns=3500000000\nutime_us=1250000\nstime_us=30000\nnvcsw=12\nnivcsw=3\nmaxrss_kb=2048\n"

const (
	hackbench = "Running in process mode with 4 groups using 20 file descriptors each (== 80 tasks)\nEach sender will pass 200 messages of 100 bytes\nTime: 0.166\n"
	stressng  = "stress-ng: info:  [10335] dispatching hogs: 1 cpu, 1 switch\nstress-ng: metrc: [10335] cpu                1019      4.00      0.61      0.00       254.57        1661.80\n"
	schbench  = `Wakeup Latencies percentiles (usec)
{"normal": {"version": "6.1.0"},"int": {"wakeup_latency_pct50.0": 11, "wakeup_latency_pct99.0": 57536, "rps": [1, {"p": "2.50"}], "list.a": {"b": 7}, "none": null}}
`
)

func TestExecSources(t *testing.T) {
	for _, c := range []struct {
		source, text string
		want, res    float64
	}{
		{`regexp:^Time: (\S+)$`, hackbench, 0.166, 0.001},
		{`regexp:metrc: \[\d+\] cpu\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)`, stressng, 254.57, 0.01},
		{`regexp:took (\S+)`, "took 1.5e3 ns", 1500, 100},
		{"json:int.wakeup_latency_pct99.0", schbench, 57536, 1},
		{"json:int.rps.1.p", schbench, 2.5, 0.01},
		{"json:int.list.a.b", schbench, 7, 1},
		{"rusage:elapsed", "", 2.5, 1e-6},
		{"rusage:user", "", 1.25, 1e-6},
		{"rusage:system", "", 0.03, 1e-6},
		{"rusage:nvcsw", "", 12, 1},
		{"rusage:nivcsw", "", 3, 1},
		{"rusage:maxrss", "", 2048, 1},
		{"time:elapsed", "done\nreal\t0m 0.20s\nuser\t0m 0.10s\nsys\t0m 0.05s\n", 0.2, 0.01},
		{"time:system", "0.10user 0.05system 0:00.20elapsed 75%CPU", 0.05, 0.01},
	} {
		w := &Exec{Command: []string{"x"}, Sources: map[string]string{"m": c.source}, Better: map[string]string{"m": "lower"}}
		if err := w.Check(); err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		got, err := w.Parse(execTrial("go go1 mips", wholeTask, "ok", "", c.text, ""))
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		v := got.Values[0]
		if math.Abs(v.Value-c.want) > 1e-9 || math.Abs(v.Resolution-c.res) > 1e-9 || v.Missing != "" || !v.Primary {
			t.Errorf("%s: %+v, want %v in steps of %v", c.source, v, c.want, c.res)
		}
	}
}

func TestExecFails(t *testing.T) {
	for _, c := range []struct{ source, status, reason, stdout, want string }{
		{"rusage:user", "failed", "exec: not found in PATH", "", "exec: not found in PATH; its last words: \"no such file\""},
		{"rusage:user", "timeout", "still running after 5s", "", "deadline"},
		{`regexp:^Time: (\S+)`, "ok", "", strings.Repeat("a line\n", 12), "m: the pattern matched nothing in 12 lines of stdout"},
		{`regexp:^Time: (\S+)`, "ok", "", "", "nothing in 0 lines of stdout"},
		{`regexp:^Time: (\S+)`, "ok", "", "Time: 1,5\n", `"1,5" is no number (in "Time: 1,5")`},
		{`regexp:^Time: (\S+)`, "ok", "", "Time: NaN\n", `"NaN" is no number`},
		{"json:a.b", "ok", "", "plain text {not at the start}\n", "no JSON in 1 line of stdout"},
		{"json:a.b", "ok", "", `{"a": {"c": 1}}`, `the JSON in stdout has no "a.b"`},
		{"json:a", "ok", "", `{"a": {"c": 1}}`, `"a" is no number`},
		{"json:a.c", "ok", "", `{"a": {"c": `, "cannot be read"},
		{"time:user", "ok", "", "real 1,234\nuser 1,100\nsys 0,050\n", `"real 1,234"`},
		{"time:user", "ok", "", "Command exited with non-zero status 2\n1.0user 0.1system 0:01.20elapsed 99%CPU", "status 2"},
	} {
		w := &Exec{Command: []string{"x"}, Sources: map[string]string{"m": c.source}, Better: map[string]string{"m": "lower"}}
		got, err := w.Parse(execTrial("go go1 mips", wholeTask, c.status, c.reason, c.stdout, "cannot open x\nno such file\n"))
		if len(got.Values) > 0 {
			t.Errorf("%s: values beside an error: %+v", c.source, got.Values)
		}
		wantFailed(t, err, c.want)
	}
}

// A figure printed after the cap is not there: the reason must say why.
func TestExecNamesACutOutput(t *testing.T) {
	w := &Exec{Command: []string{"x"}, Sources: map[string]string{"m": `regexp:^Score: (\S+)`}, Better: map[string]string{"m": "lower"}}
	files := execTrial("go go1 mips", wholeTask, "ok", "", "xxx", "").(fstest.MapFS)
	spool := string(files["spool"].Data)
	note := spoolRecord("note", "", "stdout truncated at 1048576 bytes")
	files["spool"].Data = []byte(strings.Replace(spool, spoolRecord("end", "", "status=ok\nreason=\n"), note+spoolRecord("end", "", "status=ok\nreason=\n"), 1))
	_, err := w.Parse(files)
	wantFailed(t, err, "nothing in 1 line of stdout; stdout truncated at 1048576 bytes")
}

func TestExecMissing(t *testing.T) {
	w := &Exec{Script: "x", Primary: "user", Sources: map[string]string{"user": "rusage:user", "switches": "rusage:nvcsw"}}
	got, err := w.Parse(execTrial("shell", "pid=9\nexit=0\nstart_ns=1000\nend_ns=2000\nutime_us=10000\nstime_us=0\n", "ok", "", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	if v := valueOf(t, got, "switches"); v.Missing == "" {
		t.Errorf("a count that the agent could not have became %+v", v)
	}
	if v := valueOf(t, got, "user"); v.Value != 0.01 || v.Resolution != 0.01 {
		t.Errorf("%+v", v)
	}
	if _, err := w.Parse(fstest.MapFS{}); err == nil {
		t.Error("no files, no error")
	}
}

func TestExecCheck(t *testing.T) {
	one := map[string]string{"m": "rusage:user"}
	for want, w := range map[string]Exec{
		"":                                {Script: "true", Sources: one},
		"neither command nor script":      {Sources: one},
		"both command and script":         {Command: []string{"a"}, Script: "b", Sources: one},
		"stream = \"both\"":               {Script: "x", Stream: "both", Sources: one},
		"metrics is empty":                {Script: "x"},
		"no group":                        {Script: "x", Sources: map[string]string{"m": "regexp:^Time"}},
		"missing closing":                 {Script: "x", Sources: map[string]string{"m": "regexp:(("}},
		"rusage knows":                    {Script: "x", Sources: map[string]string{"m": "rusage:idle"}},
		"time knows":                      {Script: "x", Sources: map[string]string{"m": "time:real"}},
		"must be regexp:":                 {Script: "x", Sources: map[string]string{"m": "Time: (.*)"}},
		"units names \"n\"":               {Script: "x", Sources: one, Units: map[string]string{"n": "s"}},
		"better: m = \"less\"":            {Script: "x", Sources: one, Better: map[string]string{"m": "less"}},
		"primary is missing":              {Script: "x", Sources: map[string]string{"m": "rusage:user", "n": "rusage:system"}},
		"primary = \"k\"":                 {Script: "x", Sources: one, Primary: "k"},
		"is lower or higher better":       {Script: "x", Sources: map[string]string{"m": "json:a"}},
		"env: \"A B\" is no name":         {Script: "x", Sources: one, Env: map[string]string{"A B": "1"}},
		"duration = \"-1s\": must not be": {Script: "x", Sources: one, Duration: -time.Second},
	} {
		err := w.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", w, err, want)
		}
	}
}

// FuzzExec: no output makes a value that is no number.
func FuzzExec(f *testing.F) {
	f.Add(`regexp:^Time: (\S+)`, hackbench)
	f.Add("json:int.list.a.b", schbench)
	f.Add("time:user", "real 1,234\nuser 1,100\nsys 0,050\n")
	f.Fuzz(func(t *testing.T, source, text string) {
		w := &Exec{Script: "x", Sources: map[string]string{"m": source}, Better: map[string]string{"m": "lower"}}
		if w.Check() != nil {
			return
		}
		got, err := w.Parse(execTrial("go go1", wholeTask, "ok", "", text, ""))
		if err == nil && (len(got.Values) != 1 || math.IsNaN(got.Values[0].Value) || math.IsInf(got.Values[0].Value, 0)) {
			t.Errorf("%+v", got)
		}
	})
}
