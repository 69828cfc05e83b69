package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

func renderAs(t *testing.T, run *results.Run, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, run, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func loaded(t *testing.T, run *results.Run) *source {
	t.Helper()
	src, err := load(run)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// hostile is what a device, a file name or a log may say to a reader.
func hostile() []string {
	return []string{"=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "]]><!--<script>alert(1)</script>", "\x00\x01\x1b[2J\a", "\ufffe\uffff\U0010ffff",
		"\xff\xfe\xed\xa0\x80", "```\n# forged\n```", "line\r\nVerdicts\r\n========", "\u202egpj.exe\u2066", "\"quoted\", 'and' & <b>", "a|b\n|c"}
}

// hostileRun has such text wherever a run can carry one.
func hostileRun(t *testing.T) *results.Run {
	l := newLab(t, "hostile")
	meta := l.run.Meta
	meta.Who, meta.Imported = "=HYPERLINK(\"x\")", &results.Import{Note: hostile()[8], Files: []results.ImportedFile{{Name: hostile()[9], Format: "time"}}}
	if err := l.run.SetMeta(meta); err != nil {
		t.Fatal(err)
	}
	for i, h := range hostile() {
		ms := []workloads.Metric{{Name: h, Unit: h, Better: workloads.HigherIsBetter, Primary: true}}
		l.target(results.PlannedTarget{Name: h, Arch: h})
		l.cells(h, []string{"cfs", h}, "exec."+h, []string{h}, 2, 1, ms...)
		boot := l.booted(h, "cfs", h, h, 1)
		p := parsed(ms, 1)
		p.Warnings, p.Notes = []string{h}, []string{h}
		l.trial(slot(h, "cfs", "exec."+h, h, 1, boot, 1), results.OK, "", p, &results.Activity{Samples: 1, Warnings: []string{h}})
		l.recs[len(l.recs)-1].Findings = []results.Finding{{Rule: h, Text: h, Evidence: h, Threshold: h, Hard: i%2 == 0}}
		n := l.bootAs(h, results.Boot{Kernel: h, Block: 1, Outcome: results.BootFailed, Stage: h, Reason: h, LastLines: hostile()})
		l.trial(slot(h, h, "exec."+h, h, 1, n, 1), results.BootFailed, h, nil, nil)
		l.trial(slot(h, "cfs", "exec."+h, h, 2, boot, 1), results.Failed, h, nil, nil)
		l.add(results.Record{Lane: h, Kind: results.KindNote, Note: h})
		l.end(h)
	}
	return l.done()
}

func hostileJudgement() *compare.Judgement {
	j := &compare.Judgement{Rules: stats.Defaults(), Family: 1, Notes: hostile()}
	for _, h := range hostile() {
		c := compared(h, "exec."+h, h, h, stats.Invalid, 0.1, 0.2, 4)
		c.Sentence, c.Metric.Unit, c.Metric.Name = h, h, h
		c.Findings = []results.Finding{{Rule: h, Text: h}}
		c.Moved = []compare.Moved{{Counter: h, Sentence: h, Clear: true}}
		j.Comparisons = append(j.Comparisons, c)
		j.Worth = append(j.Worth, compare.Worth{Key: c.Key, Why: h, Command: h})
		j.Findings = append(j.Findings, results.Found{Finding: c.Findings[0], Target: h, Detail: []string{h}})
	}
	return j
}

// In no format does such text become more than text.
func TestHostileTextIsInert(t *testing.T) {
	src, err := load(hostileRun(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range []*compare.Judgement{src.doc.Judgement, hostileJudgement()} {
		src.doc.Judgement = j
		for _, f := range Formats() {
			how, o, err := Options{Format: f, VMStat: true, Secondary: true}.format()
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := how.write(&b, src, o); err != nil {
				t.Fatalf("%s: %v", f, err)
			}
			text := b.String()
			if !utf8.ValidString(text) {
				t.Errorf("%s: no valid UTF-8", f)
			}
			if f == "json" {
				continue // its strings are escaped by its own rules; see TestSchema
			}
			for _, line := range strings.Split(text, "\n") {
				if (f == "text" || f == "verdicts") && columns(line) > 80 {
					t.Errorf("%s: %d columns: %s", f, columns(line), line)
				}
				if i := strings.IndexFunc(line, hidden); i >= 0 {
					t.Errorf("%s: hidden character in %q", f, line)
				}
			}
			switch f {
			case "csv", "comparisons", "samples":
				inertCSV(t, f, text)
			case "junit":
				validXML(t, text)
			case "text", "verdicts":
				if strings.Contains(text, "\nVerdicts\n========\n") && strings.Count(text, "\nVerdicts\n") > 1 {
					t.Errorf("%s: a forged heading", f)
				}
			case "md":
				if strings.Contains(text, "\n# forged") {
					t.Errorf("%s: a forged heading", f)
				}
			}
		}
	}
}

func inertCSV(t *testing.T, format, text string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll() // the same number of fields in each
	if err != nil {
		t.Fatalf("%s: %v", format, err)
	}
	for _, r := range rows {
		for _, c := range r {
			if c != "" && strings.ContainsRune("=+-@\t\r", rune(c[0])) && csvText(c) != c {
				t.Errorf("%s: a formula: %q", format, c)
			}
		}
	}
}

// validXML holds the text against the XML 1.0 grammar and its characters.
func validXML(t *testing.T, text string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(text))
	dec.Strict = true
	for {
		_, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range text {
		if r != '\t' && r != '\n' && r != '\r' && (r < 0x20 || r == 0xfffe || r == 0xffff || r >= 0xd800 && r < 0xe000) {
			t.Errorf("character %U is none of XML 1.0", r)
		}
	}
}

// The suites count what their cases are, and each kind of case is what CI takes
// it for.
func TestJUnit(t *testing.T) {
	src, err := load(verdictRun(t))
	if err != nil {
		t.Fatal(err)
	}
	src.doc.Judgement = everyVerdict()
	var b bytes.Buffer
	if err := writeJUnit(&b, src, Options{}); err != nil {
		t.Fatal(err)
	}
	validXML(t, b.String())
	var got junitSuites
	if err := xml.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"default: bfs against cfs, rate": "ok", "j3: bfs against cfs, rate": "failure", "j1: bfs against cfs, rate": "ok",
		"default: bore against cfs, rate": "error", "j1: bore against cfs, rate": "skipped", "j3: bore against cfs, rate": "skipped",
		"default on cfs": "ok", "default on bfs": "skipped", "default on bore": "skipped", "cfs": "ok", "bfs": "skipped", "bore": "skipped",
	}
	s := got.Suites[0]
	if s.Name != "malta" || len(s.Cases) != len(want) || s.Tests != len(want) || s.Failures != 1 || s.Errors != 1 || s.Skipped != 6 || got.Tests != s.Tests+got.Suites[1].Tests {
		t.Errorf("%+v", s)
	}
	for _, c := range s.Cases {
		is := "ok"
		switch {
		case c.Failure != nil:
			is = "failure"
		case c.Error != nil:
			is = "error"
		case c.Skipped != nil:
			is = "skipped"
		}
		if want[c.Name] != is {
			t.Errorf("%s is %s, want %q", c.Name, is, want[c.Name])
		}
	}
}

// Samples of every attempt, with time from its first sample; damage is said.
func TestSamples(t *testing.T) {
	l := newLab(t, "samples")
	ms := []workloads.Metric{m("seconds", "s", workloads.LowerIsBetter)}
	l.target(results.PlannedTarget{Name: "a"})
	l.cells("a", []string{"one"}, "exec.x", []string{"default"}, 1, 5, ms...)
	boot := l.booted("a", "one", "6.1", "cfs", 1)
	head := "mono_ns,seconds,r,cs,new,note\n"
	for repeat, file := range []string{head + "5000000000,1,1,6,9,\n6001000000,1,n/a,2,9,=no r\n", head, "", "x\n\"", head + "7,1,NaN,1e300,9\n"} {
		s := slot("a", "one", "exec.x", "default", 1, boot, repeat)
		l.trial(s, results.OK, "", parsed(ms, 1), nil)
		if file != "" {
			l.raw(s, "vmstat.csv", file)
		}
	}
	s := slot("a", "one", "exec.x", "default", 1, boot, 0)
	l.raw(s, "peer-vmstat.csv", head+"0,0,3,4,9,\n")
	skipped := slot("a", "one", "exec.x", "default", 1, boot, 5)
	l.add(results.Record{Lane: "a", Kind: results.KindJudged, Slot: &skipped, Outcome: results.Skipped, Reason: "cut"})
	l.end("a")
	rows, err := csv.NewReader(strings.NewReader(renderAs(t, l.done(), Options{Format: "samples"}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows[1:] {
		got = append(got, strings.Join([]string{r[6], r[8], r[9], r[10], r[12], r[23], r[len(r)-1]}, "|"))
	}
	want := []string{"0|false|peer||3|4|", "0|false||0.000|1|6|", "0|false||1.001||2|'=no r",
		"1|true|||||n/a (vmstat.csv: it holds no samples)",
		"2|true|||||n/a (no vmstat.csv in a/boot-001/exec.x.default.02/attempt-1)",
		"3|true|||||n/a (vmstat.csv: parse error on line 2, column 2: extraneous or missing \" in quoted-field)",
		"4|true||0.000||1e300|column r: no number: \"NaN\"; ", "5|false|||||n/a (not executed: skipped)"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
