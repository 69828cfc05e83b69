package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

func TestUnknownFormat(t *testing.T) {
	err := Write(&bytes.Buffer{}, &results.Run{}, Options{Format: "pdf"})
	if err == nil || err.Error() != `no report format "pdf"; there are: `+strings.Join(Formats(), ", ") {
		t.Error(err)
	}
}

func TestColorOnlyWhenAsked(t *testing.T) {
	run := newLab(t, "s").done()
	for _, color := range []bool{false, true} {
		var b bytes.Buffer
		if err := Write(&b, run, Options{Color: color}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "\x1b[") != color {
			t.Errorf("color %v: %q", color, b.String())
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain":           "plain",
		"tab\tand\nline":  `tab\x09and | line`,
		"\x1b[2J":         `\x1b[2J`,
		"\xff\xfe":        `\xff\xfe`,
		"\u009b2J":        `\x9b2J`,
		"\u202egpj.exe":   `\u202egpj.exe`,
		"\u2028":          `\u2028`,
		"grün…":           "grün…",
		"\x7f":            `\x7f`,
		"\U000e0041":      `\ue0041`,
		"\ufeffmark":      `\ufeffmark`,
		"replaced \ufffd": "replaced \ufffd",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzWrapClean(f *testing.F) {
	f.Add("  cause    a reason of some length", 20)
	f.Add("\x1b\xff\u202e", 12)
	f.Fuzz(func(t *testing.T, s string, width int) {
		width = 12 + (width%100+100)%100
		c := clean(s)
		if strings.ContainsFunc(c, hidden) || !utf8.ValidString(c) || clean(c) != c {
			t.Fatalf("%q is not clean", c)
		}
		for _, l := range wrap(c, width, "    ") {
			if columns(l) > width {
				t.Fatalf("%d columns: %q", columns(l), l)
			}
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"  two  words", 20, "  two  words"},
		{"  aaaa bbbb cccc", 11, "  aaaa bbbb|    cccc"},
		{"abcdefghijkl", 5, "abcde|    f|    g|    h|    i|    j|    k|    l"},
		{"", 5, ""},
		{"from 1 % to 2 % a", 14, "from 1 % to|    2 % a"},
		{"aaaa  %", 6, "aaaa|    %"},
	} {
		if got := strings.Join(wrap(c.in, c.width, "    "), "|"); got != c.want {
			t.Errorf("%q: %q", c.in, got)
		}
	}
}

// A table too wide is printed in parts that fit, the labels repeated.
func TestTableInParts(t *testing.T) {
	tab := table{labels: 1, head: []string{"kernel"}}
	row := []string{strings.Repeat("long", 20)}
	for i := range 12 {
		tab.head = append(tab.head, fmt.Sprintf("scenario%02d", i))
		row = append(row, fmt.Sprint(1000*i))
	}
	tab.row(row...)
	lines := tab.lines(60)
	all := strings.Join(lines, "\n")
	for _, l := range lines {
		if columns(l) > 60 {
			t.Errorf("%d columns: %s", columns(l), l)
		}
	}
	if strings.Count(all, "kernel ") < 2 || !strings.Contains(all, "scenario11") || !strings.Contains(all, "11000") || !strings.Contains(all, "…") {
		t.Error(all)
	}
}

func TestPrintedLineAgreesWithTheFigure(t *testing.T) {
	l := newLab(t, "s")
	s := slot("a", "k", "iperf.x", "default", 1, 1, 1)
	l.raw(s, "client-stdout", "[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec    0             sender\r\n"+
		"[  5]   0.00-10.04  sec  1.09 GBytes   935 Mbits/sec                  receiver\r\n")
	dir := l.run.TrialDir(s, 1)
	for rate, want := range map[float64]string{935: "receiver", 941: "sender", 500: "", 0: ""} {
		if got := printedLine(dir, rate); (want == "") != (got == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%v: %q", rate, got)
		}
	}
}

func TestJSONIsWhole(t *testing.T) {
	l := newLab(t, "s")
	l.target(results.PlannedTarget{Name: "a"})
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter)}
	l.cells("a", []string{"one"}, "exec.x", []string{"default"}, 1, 1, ms...)
	boot := l.booted("a", "one", "6.1", "cfs", 1)
	l.trial(slot("a", "one", "exec.x", "default", 1, boot, 1), results.OK, "", parsed(ms, 5), nil)
	var b bytes.Buffer
	if err := Write(&b, l.done(), Options{Format: "json"}); err != nil {
		t.Fatal(err)
	}
	var d Document
	dec := json.NewDecoder(&b)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		t.Fatal(err)
	}
	f := d.Workloads[0].Cells[0].Figures[0]
	if d.Format != DocumentFormat || f.Name != "seconds" || f.Median.Value != 5 || f.CILow.Missing != "one boot" || f.Raw[0][0] != 5 {
		t.Errorf("%+v", f)
	}
}

// A run of 10,000 cells is reported in seconds, not minutes.
func TestLargeRun(t *testing.T) {
	l := newLab(t, "large")
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter)}
	l.target(results.PlannedTarget{Name: "a"})
	var scenarios []string
	for i := range 2000 {
		scenarios = append(scenarios, fmt.Sprintf("s%04d", i))
	}
	kernels := []string{"k1", "k2", "k3", "k4", "k5"}
	l.cells("a", kernels, "exec.x", scenarios, 1, 1, ms...)
	for _, k := range kernels {
		boot := l.booted("a", k, "6.1", "cfs", 1)
		for i, sc := range scenarios {
			l.trial(slot("a", k, "exec.x", sc, 1, boot, 1), results.OK, "", parsed(ms, float64(i+1)), nil)
		}
	}
	run := l.done()
	began := time.Now()
	var b bytes.Buffer
	if err := Write(&b, run, Options{}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

// A kernel that panics in a trial is listed even when another of its boots
// failed too; a boot retried in its block counts once, its boot_ids all count.
func TestFailuresAndRetriedBoots(t *testing.T) {
	l := newLab(t, "s")
	l.target(results.PlannedTarget{Name: "a"})
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter)}
	l.cells("a", []string{"one"}, "exec.x", []string{"default"}, 3, 1, ms...)
	l.booted("a", "one", "6.1", "cfs", 1)
	boot := l.booted("a", "one", "6.1", "cfs", 1)
	l.trial(slot("a", "one", "exec.x", "default", 1, boot, 1), results.BootFailed, "panic during the trial: Oops", nil, nil)
	n := l.bootAs("a", results.Boot{Kernel: "one", Block: 2, Outcome: results.BootFailed, Stage: "hang", Reason: "silent"})
	l.trial(slot("a", "one", "exec.x", "default", 2, n, 1), results.BootFailed, "hang: silent", nil, nil)
	src, err := load(l.done())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range src.doc.Failures {
		got = append(got, f.What+": "+f.Reason)
	}
	want := "boot 3: silent|exec.x default, block 1, repeat 1: panic during the trial: Oops"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s", s)
	}
	k := src.doc.Targets[0].Kernels[0]
	if k.Boots[results.OK] != 1 || k.Boots[results.BootFailed] != 1 || k.BootIDs != 2 || k.DidNotBoot != nil {
		t.Errorf("%+v", k)
	}
	if c := src.doc.Workloads[0].Cells[0]; c.NotRun != 1 || c.Empty != "boot-failed: panic during the trial: Oops" {
		t.Errorf("%+v", c)
	}
}

func TestNamesOfMetrics(t *testing.T) {
	for name, want := range map[string]string{"LTMM.user": "LTMM/user", "LTMB_wall": "LTMB/wall", "makespan": "/", "user": "/", "total.wall": "total/wall"} {
		if task, q := crunchPart(name); task+"/"+q != want {
			t.Errorf("%s: %s/%s", name, task, q)
		}
	}
	for name, want := range map[string]string{"p99": "p99", "p99.9": "", "late.p99": "", "intended.max": "", "max": "max",
		"mean": "mean", "sd": "sd", "samples": "samples", "runtime": ""} {
		got := ""
		for _, c := range latencyColumns() {
			if isLatency(c.words)(name) {
				got += c.head
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"elapsed": "Elapsed Time", "user": "User Time", "system": "System Time", "percent": "Percent CPU",
		"ctx": "Context Switches", "sleeps": "Sleeps", "half_involuntary": "Context Switches", "half_voluntary": "Sleeps"} {
		got := ""
		for _, r := range kernbenchRows() {
			if r.is(name) {
				got += r.label
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
