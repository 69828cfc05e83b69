package report

import (
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchunit"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// odd are names that other people's logs may bring.
func odd() []string { return []string{"cfs", "bfs v0.3 -8", "größe\n\x1b[2J=1:/"} }

func benchRun(t *testing.T) *results.Run {
	l := newLab(t, "bench")
	ms := []workloads.Metric{{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}, m("loss", "%", workloads.LowerIsBetter),
		m("busy", "%", workloads.HigherIsBetter), m("p99-8", "ns", workloads.LowerIsBetter), m("moved", "MB", workloads.Informative), m("odd unit", "", workloads.LowerIsBetter)}
	for ti, target := range []string{"malta", "Ziel 2"} {
		l.target(results.PlannedTarget{Name: target})
		scenarios := []string{"default", "j3-4", "a/b=c %"}
		l.cells(target, odd(), "iperf.to_target", scenarios, 5, 3, ms...)
		for ki, k := range odd() {
			for block := 1; block <= 4+ki; block++ {
				boot := l.booted(target, k, "6.1", "cfs", block)
				for si, sc := range scenarios {
					for repeat := range 3 {
						x := 1 + float64((13*block+7*repeat+3*si+5*ki+ti)%17)/100
						p := parsed(ms, 23.4*x, 0, 97*x, 1234567*x, 27.3*x, 1e-9*x)
						if block == 2 {
							p.Values[4].Missing = "not printed"
						}
						if si == 1 {
							p.Values[1].Value = float64(block % 2)
						}
						l.trial(slot(target, k, "iperf.to_target", sc, block, boot, repeat+1), results.OK, "", p, nil)
					}
				}
			}
		}
		l.end(target)
	}
	return l.done()
}

// benchstat reads every line, and the centers that it prints for each kernel are
// our medians of boot values.
func TestBenchstatAgrees(t *testing.T) {
	run := benchRun(t)
	file := filepath.Join(t.TempDir(), "bench.txt")
	text := renderAs(t, run, Options{Format: "bench"})
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "tool", "benchstat", "-format", "csv", "-col", "kernel", file)
	var warnings strings.Builder
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil || strings.Contains(warnings.String(), "bench.txt:") {
		t.Fatalf("%v: %s", err, warnings.String())
	}
	got := benchstatCenters(t, string(out))
	src, err := load(run)
	if err != nil {
		t.Fatal(err)
	}
	units := benchUnits(src.doc)
	n := 0
	for _, w := range src.doc.Workloads {
		for i := range w.Cells {
			c := &w.Cells[i]
			for _, f := range c.Figures {
				want, unit := benchunit.Tidy(f.Median.Value, units.of(f.Metric))
				key := strings.Join([]string{safeName(c.Target), safeName(c.Kernel), strings.TrimPrefix(benchName(c, f.Name), "Benchmark"), unit}, "|")
				x, ok := got[key]
				if !ok {
					t.Errorf("%s: not in benchstat's output:\n%s", key, out)
					return
				}
				if math.Abs(x-want) > 1e-6*math.Abs(want) {
					t.Errorf("%s: benchstat %v, our median %v", key, x, want)
				}
				n++
			}
		}
	}
	if n != 2*3*3*6 || len(got) != n {
		t.Errorf("%d medians compared, benchstat has %d", n, len(got))
	}
}

// benchstatCenters by target, kernel, name and unit.
func benchstatCenters(t *testing.T, out string) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	in := csv.NewReader(strings.NewReader(out))
	in.FieldsPerRecord = -1
	rows, err := in.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var kernels, units []string
	target := ""
	for _, r := range rows {
		switch {
		case strings.HasPrefix(r[0], "target: "):
			target = strings.TrimPrefix(r[0], "target: ")
		case len(r) == 1 || r[0] == "geomean":
		case r[0] == "" && kernels == nil:
			kernels = r
		case r[0] == "":
			units = r
		default:
			for i := 1; i < len(r); i++ {
				if units[i] == "CI" || units[i] == "vs base" || units[i] == "P" || r[i] == "" {
					continue
				}
				v, err := strconv.ParseFloat(r[i], 64)
				if err != nil {
					t.Fatalf("%q in %q", r[i], r)
				}
				got[target+"|"+kernels[i]+"|"+r[0]+"|"+units[i]] = v
			}
			continue
		}
		if r[0] != "" {
			kernels, units = nil, nil
		}
	}
	return got
}

func TestSafeNames(t *testing.T) {
	seen := map[string]string{}
	for _, s := range []string{"", "a", "a b", "a%20b", "a\tb", "-a", "a-", "a-8", "ä", "a/b", "a=b", "a:b", "%", "a\x00", "\xff", "A"} {
		n := safeName(s)
		if old, ok := seen[n]; ok {
			t.Errorf("%q and %q are both %q", old, s, n)
		}
		seen[n] = s
		if strings.ContainsAny(n, " \t\n/=:\x00\"") || n == "" {
			t.Errorf("%q: %q", s, n)
		}
	}
}
