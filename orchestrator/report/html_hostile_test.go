package report

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"kernsweep/orchestrator/report/svg"
	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// nasty is text that a device, a file or a user may bring.
const nasty = "<script>alert(1)</script><img src=x onerror=alert(1)>\"' onload=x ]]></style></svg></title><!-- {{.}} javascript:alert(1)" +
	"\x1b[2J\x07\x00\r\u202egpj.exe\u2028\u200b\ufeff\xff\xc0\u009b"

// Whatever untrusted text says, it is text on the page, and every sign in it
// that could hide or turn something is seen.
func TestHTMLTakesNoOrders(t *testing.T) {
	l := newLab(t, "night"+nasty)
	ms := []workloads.Metric{{Name: "rate" + nasty, Unit: "u" + nasty, Better: workloads.HigherIsBetter, Primary: true}, m("x"+nasty, nasty, workloads.LowerIsBetter)}
	long := strings.Repeat("long_", 60)
	target, kernels := "t"+nasty, []string{"base" + nasty, "k" + nasty + long}
	l.target(results.PlannedTarget{Name: target, Arch: nasty, Boot: nasty})
	l.kernel(kernels[0], nasty)
	l.cells(target, kernels, "iperf."+nasty, []string{"s" + nasty}, 2, 1, ms...)
	for block := 1; block <= 2; block++ {
		for _, k := range kernels {
			boot := l.bootAs(target, results.Boot{Kernel: k, Block: block, Outcome: results.OK, Record: targets.BootRecord{Kernel: k, Release: nasty, Unproven: nasty,
				Scheduler: targets.Scheduler{Name: nasty, Detail: nasty, Evidence: []string{nasty}, Conflicts: []string{nasty}}}})
			s := slot(target, k, "iperf."+nasty, "s"+nasty, block, boot, 1)
			p := parsed(ms, 3+float64(block), 4)
			p.Warnings, p.Notes = []string{nasty}, []string{nasty}
			l.trial(s, results.OK, "", p, &results.Activity{Samples: 1, Warnings: []string{nasty}, Missing: []string{nasty}})
			l.raw(s, "vmstat.csv", "mono_ns,seconds,cs,us\n1,1,<script>,5\n2,NaN,3,1e400\n3,1,7,9\n"+nasty+"\n\"")
		}
	}
	l.bootAs(target, results.Boot{Kernel: kernels[1], Block: 3, Outcome: results.BootFailed, Stage: nasty, Reason: nasty, LastLines: []string{nasty, strings.Repeat("y", 5000)}})
	s := slot(target, kernels[1], "iperf."+nasty, "s"+nasty, 3, 9, 1)
	l.trial(s, results.Failed, nasty, nil, nil)
	l.add(results.Record{Kind: results.KindNote, Lane: target, Note: nasty})
	l.add(results.Record{Lane: target, Kind: results.KindLane, Note: results.NoteQuarantined, Reason: nasty})
	l.end(target)
	checkHostile(t, htmlOf(t, l.done()))

	d := judged()
	d.Run.Name, d.Run.Who, d.Run.Host, d.Run.Version, d.Run.Command, d.Run.PlanHash = nasty, nasty, nasty, nasty, []string{nasty}, nasty
	d.Run.Images = map[string]string{nasty: nasty}
	d.Run.Imported = &results.Import{Note: nasty, Files: []results.ImportedFile{{Name: nasty, Format: nasty, Kept: nasty, SHA256: nasty}}}
	d.Damage, d.Running = []string{nasty}, nasty
	d.Sessions = []results.Session{{Began: t0, Why: nasty}}
	j := d.Judgement
	j.Notes = []string{nasty}
	for i := range j.Comparisons {
		c := &j.Comparisons[i]
		c.Sentence, c.Kernel, c.Target, c.Metric.Name, c.Metric.Unit = nasty, nasty, nasty, nasty, nasty
	}
	j.Worth[0].Command, j.Worth[0].Why, j.Overall[0].Sentence = nasty, nasty, nasty
	j.Findings = append(j.Findings, results.Found{Finding: results.Finding{Rule: nasty, Text: nasty, Evidence: nasty, Threshold: nasty}, Target: nasty, Detail: []string{nasty}})
	checkHostile(t, htmlOfDoc(t, d))
}

func checkHostile(t *testing.T, b []byte) {
	t.Helper()
	root := checkPage(t, b)
	for _, r := range string(b) {
		if r != '\n' && hidden(r) {
			t.Fatalf("hidden character %q", r)
		}
	}
	text := textOf(root)
	for _, want := range []string{"<script>alert(1)</script>", "onerror=alert(1)", "]]></style></svg></title>", `\u202egpj.exe`, `\x1b[2J`} {
		if !strings.Contains(text, want) {
			t.Errorf("not visible: %q", want)
		}
	}
	for n := range root.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("a comment: %q", n.Data)
		}
	}
}

// Numbers of every kind make a page without NaN, and marks that stand inside
// their plots.
func TestHTMLOfAwkwardNumbers(t *testing.T) {
	for name, values := range map[string][]float64{
		"one": {5}, "equal": {5, 5, 5, 5}, "zero": {0, 0, 0}, "negative": {-3, 2, 5}, "huge": {1e300, 2e300, 1.5e308}, "tiny": {1e-300, 5e-324, 1e-310},
		"wide": {1e-300, 1, 1e300}, "opposite": {-1.5e308, 1.5e308}, "close": {1, math.Nextafter(1, 2)}, "close huge": {1e15, 1e15 + 1}, "not finite": {math.NaN(), math.Inf(1), 3},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "s")
			ms := []workloads.Metric{{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}}
			l.target(results.PlannedTarget{Name: "t"})
			l.cells("t", []string{"a", "b"}, "iperf.x", []string{"default"}, len(values), 1, ms...)
			for i, v := range values {
				for j, k := range []string{"a", "b"} {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						v = 1 // a journal cannot hold it; the plots are tried with it below
					}
					boot := l.booted("t", k, "6.1", k, i+1)
					l.trial(slot("t", k, "iperf.x", "default", i+1, boot, 1), results.OK, "", parsed(ms, v*(1+float64(j)/10)), nil)
				}
			}
			l.end("t")
			b := htmlOf(t, l.done())
			root := checkPage(t, b)
			for n := range root.Descendants() {
				if text := textOf(n); (n.Data == "table" || n.Namespace == "svg") && (strings.Contains(text, "NaN") || strings.Contains(text, "Inf")) {
					t.Errorf("NaN or Inf in %s", text)
				}
			}
			checkPlaces(t, root)
		})
	}
}

var anyShare = regexp.MustCompile(`^-?[0-9.]+%$`)

// checkPlaces: every text of a plot is inside it at the least width, and no
// place along it is outside or no number.
func checkPlaces(t *testing.T, root *html.Node) {
	t.Helper()
	for n := range root.Descendants() {
		if n.Namespace != "svg" {
			continue
		}
		for _, key := range []string{"x", "x1", "x2", "cx"} {
			if v := attr(n, key); v != nil && anyShare.MatchString(*v) {
				if x, err := strconv.ParseFloat(strings.TrimSuffix(*v, "%"), 64); err != nil || x < 0 || x > 100 {
					t.Errorf("<%s %s=%s>", n.Data, key, *v)
				}
			}
		}
		if n.Data == "text" {
			checkText400(t, n)
		}
	}
}

// checkText400 computes where a label ends, with 6.6 px for each character.
func checkText400(t *testing.T, n *html.Node) {
	t.Helper()
	for _, width := range []float64{svg.MinWidth, 210, 600, 1000} {
		if c := *attr(n, "class"); width < 200 && (strings.Contains(c, "minor") || strings.Contains(c, "name")) {
			continue // not shown there, or in a drawing that takes the whole page
		}
		at, err := strconv.ParseFloat(strings.TrimSuffix(*attr(n, "x"), "%"), 64)
		if err != nil {
			t.Fatal(err)
		}
		at *= width / 100
		w := 6.6 * float64(len([]rune(textOf(n))))
		from := map[string]float64{"start": at, "middle": at - w/2, "end": at - w}[*attr(n, "text-anchor")]
		if from < -0.5 || from+w > width+0.5 {
			t.Errorf("%q from %.0f to %.0f of %.0f px", textOf(n), from, from+w, width)
		}
	}
}

// Colours of text have a contrast of 4.5 and those of marks one of 3 with what
// lies behind them, in both modes (WCAG 2.2, 1.4.3 and 1.4.11).
func TestHTMLContrast(t *testing.T) {
	css, err := htmlFiles.ReadFile("html/style.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(css), 2)
	for i, block := range blocks {
		c := map[string]string{}
		for _, x := range regexp.MustCompile(`--([a-z0-9]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(block[1], -1) {
			c[x[1]] = x[2]
		}
		for _, back := range []string{"bg", "card"} {
			for name, least := range map[string]float64{"fg": 4.5, "soft": 4.5, "link": 4.5, "focus": 3, "good": 3, "bad": 3, "neutral": 3, "doubt": 3, "wrong": 3,
				"base": 3, "k0": 3, "k1": 3, "k2": 3, "k3": 3, "k4": 3, "k5": 3} {
				if r := contrast(t, c[name], c[back]); r < least {
					t.Errorf("mode %d: %s %s on %s %s: %.2f", i, name, c[name], back, c[back], r)
				}
			}
		}
		for _, name := range []string{"good", "bad", "neutral", "fg", "doubt", "wrong"} { // marks stand on the zone too
			if r := contrast(t, c[name], c["zone"]); r < 3 {
				t.Errorf("mode %d: %s on the zone: %.2f", i, name, r)
			}
		}
	}
	if len(blocks) != 2 {
		t.Fatal("a light and a dark mode are wanted")
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var c [3]int
	if _, err := fmt.Sscanf(hex, "#%02x%02x%02x", &c[0], &c[1], &c[2]); err != nil {
		t.Fatalf("colour %q: %v", hex, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(c[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}

// A million values and a million rows of counters make a small page.
func TestHTMLOfAMillionSamples(t *testing.T) {
	n := 100_000
	if os.Getenv("KERNSWEEP_LONG") != "" {
		n = 1_000_000
	}
	b := htmlOf(t, samplesRun(t, n))
	if len(b) > 2<<20 {
		t.Errorf("%d bytes", len(b))
	}
	checkPage(t, b)
}

func BenchmarkHTMLOfAMillionSamples(b *testing.B) {
	run := samplesRun(b, 1_000_000)
	for b.Loop() {
		htmlOf(b, run)
	}
}

// samplesRun has n values in a series and n rows of vmstat.
func samplesRun(t testing.TB, n int) *results.Run {
	t.Helper()
	run, err := results.Create(t.TempDir(), "big", results.RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{run: run, lane: map[string]int{}, boot: map[string]int{}, plan: results.PlanSummary{Sweep: "big", Metrics: map[string][]workloads.Metric{}}}
	l.fill(t, n)
	return l.run
}

func (l *lab) fill(t testing.TB, n int) {
	ms := []workloads.Metric{{Name: "p50", Unit: "us", Better: workloads.LowerIsBetter, Primary: true}}
	l.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	l.target(results.PlannedTarget{Name: "t"})
	l.cells("t", []string{"a", "b"}, "latency.x", []string{"default"}, 4, 1, ms...)
	for block := 1; block <= 4; block++ {
		for j, k := range []string{"a", "b"} {
			boot := l.booted("t", k, "6.1", k, block)
			s := slot("t", k, "latency.x", "default", block, boot, 1)
			p := parsed(ms, 10)
			for i := range n / 8 {
				p.Values[0].Each = append(p.Values[0].Each, 10+float64(j)+float64(i%997)/100+float64(block)/50)
			}
			l.trial(s, results.OK, "", p, nil)
			if block != 2 { // the one of equal values that is drawn
				continue
			}
			var b strings.Builder
			b.WriteString("mono_ns,seconds,r,b,swpd,free,buff,cache,si,so,bi,bo,in,cs,us,sy,id,wa,st,gu,note\n")
			for i := range n / 2 {
				fmt.Fprintf(&b, "%d,0.1,2,0,0,100,0,100,0,0,0,0,%d,%d,%d,10,%d,0,0,0,\n", i*1e8, 250+i%40, 400+i%301, 40+i%7, 50-i%7)
			}
			dir := l.run.TrialDir(s, 1)
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "vmstat.csv"), []byte(b.String()), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var file []byte
	for _, r := range l.recs {
		b, err := results.EncodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		file = append(file, b...)
	}
	if err := errors.Join(l.run.WritePlan(l.plan, nil), os.WriteFile(filepath.Join(l.run.Dir(), "journal.jsonl"), file, 0o644)); err != nil {
		t.Fatal(err)
	}
}
