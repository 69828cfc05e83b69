package report

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/workloads"
)

// A series keeps its extremes, its mean and its gaps whatever its length is.
func TestSeriesKeepsExtremes(t *testing.T) {
	for _, n := range []int{1, 2, 59, 60, 61, 119, 120, 121, 10_007} {
		var b strings.Builder
		b.WriteString("note,seconds,cs,us\n")
		sum := 0.0
		for i := range n {
			v := float64(i % 100)
			if i == n/2 {
				v = 5000
			}
			sum += v
			fmt.Fprintf(&b, ",0.5,%g,n/a\n", v)
		}
		s, err := readSeries(strings.NewReader(b.String()), 60)
		if err != nil {
			t.Fatal(err)
		}
		points, all := s.points(0)
		if len(points) > 60 || len(points) == 0 || all.n != n || all.max != 5000 || math.Abs(all.sum-sum) > 1e-6*sum || math.Abs(s.length-float64(n)/2) > 1e-6*float64(n) {
			t.Errorf("%d rows: %d points, %+v, %g s", n, len(points), all, s.length)
		}
		for i, p := range points {
			if p.At > s.length+s.width || i > 0 && p.At <= points[i-1].At || p.Min > p.Mean || p.Mean > p.Max {
				t.Errorf("%d rows: point %d is %+v", n, i, p)
			}
		}
		if _, none := s.points(2); none.n != 0 {
			t.Errorf("a column of n/a has %d values", none.n)
		}
	}
}

func TestSeriesOfDamagedFiles(t *testing.T) {
	for text, rows := range map[string]int{
		"":                                     0,
		"seconds,cs\n":                         0,
		"cs\n1\n2\n":                           2, // no seconds: one each
		"seconds,cs\n1,5\n1,6,7\n1,8\n":        1, // up to the damage
		"seconds,cs\n1,5\n\"":                  1,
		"seconds,cs\nNaN,5\n-1,6\n1e300,7\n":   3,
		"seconds,cs\n9e8,5\n9e8,6\n9e8,7\n1,1": 2, // longer than anything is
		"seconds,cs\n1,NaN\n1,+Inf\n1,<b>\n":   3,
	} {
		s, _ := readSeries(strings.NewReader(text), 60)
		if s.rows != rows {
			t.Errorf("%q: %d rows, want %d", text, s.rows, rows)
		}
		for i := range panelColumns() {
			points, all := s.points(i)
			if len(points) > 60 || math.IsNaN(all.sum) || math.IsInf(all.sum, 0) {
				t.Errorf("%q: %d points, %+v", text, len(points), all)
			}
		}
	}
}

// What cannot be drawn is n/a, with the reason.
func TestLinesSayWhatIsMissing(t *testing.T) {
	l := newLab(t, "s")
	ms := []workloads.Metric{{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}}
	kernels := []string{"good", "torn", "gone", "empty", "linked"}
	l.target(results.PlannedTarget{Name: "t"})
	l.cells("t", kernels, "iperf.x", []string{"default"}, 1, 1, ms...)
	for _, k := range kernels {
		s := slot("t", k, "iperf.x", "default", 1, l.booted("t", k, "6.1", k, 1), 1)
		l.trial(s, results.OK, "", parsed(ms, 5), nil)
		switch k {
		case "good":
			l.raw(s, "peer-vmstat.csv", "seconds,cs\n1,1\n")
			l.raw(s, "vmstat.csv", "seconds,cs\n1,400\n1,500\n")
		case "torn":
			l.raw(s, "vmstat.csv", "seconds,cs\n1,400\n1,500\n1,5\"00\n")
		case "empty":
			l.raw(s, "vmstat.csv", "")
		case "linked":
			l.raw(s, "stdout", "")
			if err := os.Symlink("/dev/zero", filepath.Join(l.run.TrialDir(s, 1), "vmstat.csv")); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.end("t")
	text := textOf(checkPage(t, htmlOf(t, l.done())))
	for _, want := range []string{"good: boot 1, repeat 1, 2 samples in 2 s", "torn: boot 2, repeat 1, 2 samples in 2 s", "torn: n/a (vmstat.csv: parse error",
		"gone: n/a (no vmstat.csv)", "the file is empty", "linked: n/a (vmstat.csv is no plain file)", "good: mean 450, from 400 to 500"} {
		if !strings.Contains(text, want) {
			t.Errorf("not on the page: %q", want)
		}
	}
}
