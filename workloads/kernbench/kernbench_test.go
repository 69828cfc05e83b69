package kernbench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func readFile(t *testing.T, name string) []Log {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	logs, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return logs
}

// Two published sessions on a quad-core, five runs a level, whose last two
// levels are pooled.
func TestUnpoolPublished(t *testing.T) {
	logs := readFile(t, "quad.log")
	if len(logs) != 2 || logs[0].Release != "2.6.35" || logs[1].Release != "2.6.35-ck1" {
		t.Fatalf("%+v", logs)
	}
	want := map[string][2]map[Metric]Figure{
		"Optimal load -j 4": {
			{User: {Mean: 81.076, SD: .0906}, System: {Mean: 11.96, SD: .1093}, Percent: {Mean: 362.4, SD: 1.6787}, Context: {Mean: 10099.2, SD: 76.467}, Sleeps: {Mean: 12923.6, SD: 93.877}},
			{User: {Mean: 82.58, SD: .0618}, System: {Mean: 10.722, SD: .0526}, Percent: {Mean: 363.8, SD: 1.6487}, Context: {Mean: 8659.2, SD: 77.803}, Sleeps: {Mean: 13599, SD: 121.925}},
		},
		"Maximal load -j": {
			{Elapsed: {Mean: 26.65, SD: .0245}, User: {Mean: 84.704, SD: .0621}, Percent: {Mean: 365.6, SD: .5191}, Context: {Mean: 20680.7, Open: 0.1}, Sleeps: {Mean: 12394.7, Open: 0.1}},
			{Elapsed: {Mean: 26.408, SD: .0614}, User: {Mean: 85.638, SD: .0673}, Percent: {Mean: 366, SD: .692}, Context: {Mean: 14554.4, SD: 173.83}},
		},
	}
	for i, l := range logs {
		for k, level := range l.Levels {
			if level.Pooled != (k >= 2) || level.Failed {
				t.Errorf("%s, %s: pooled %v, failed %v", l.Release, level.Name, level.Pooled, level.Failed)
			}
		}
		for k, level := range Unpool(l.Levels, 5) {
			if k < 2 {
				if d := cmp.Diff(l.Levels[k], level); d != "" {
					t.Error(d)
				}
				continue
			}
			for m, f := range want[level.Name][i] {
				got := level.Figures[m]
				if got.Missing != "" || math.Abs(got.Mean-f.Mean) > 1e-6 || math.Abs(got.SD-f.SD) > 0.01*f.SD || math.Abs(got.Open-f.Open) > 1e-9 || got.HasSD != (f.SD > 0) {
					t.Errorf("%s, %s, %s: %+v, want %+v", l.Release, level.Name, m, got, f)
				}
			}
		}
	}
}

func TestRead(t *testing.T) {
	t.Run("single run, no deviation", func(t *testing.T) {
		l := readFile(t, "one.log")[0]
		if f := l.Levels[0].Figures[Percent]; f.Mean != 75 || f.HasSD || l.Release != "6.1.0-toy" {
			t.Errorf("%+v %+v", l, f)
		}
	})
	t.Run("failed build", func(t *testing.T) {
		log := readFile(t, "failed.txt")[0]
		for _, level := range log.Levels {
			if !level.Failed || level.Figures[Sleeps].Missing == "" {
				t.Errorf("%s passes for a build", level.Name)
			}
		}
		if log.Release != "6.1.0-toy" || log.Date != "" || len(log.Levels) != 2 {
			t.Errorf("%+v", log)
		}
	})
	t.Run("strange numbers", func(t *testing.T) {
		logs, err := Read(strings.NewReader("d\nr\nAverage Half load -j 2 Run (std deviation):\nElapsed Time No data\nUser Time 1 (-nan)\nSleeps 1.8781e+06 (5310.33)\n"))
		if err != nil {
			t.Fatal(err)
		}
		f := logs[0].Levels[0].Figures
		if f[Elapsed].Missing == "" || f[User].HasSD || f[Sleeps].Mean != 1878100 || f[Percent].Missing == "" {
			t.Errorf("%+v", f)
		}
	})
	// As mail and other versions have it: broken lines, tabs, columns, other titles.
	for name, text := range map[string]string{
		"0.30":        "2.6.0\nAverage Half Load -j 2 Run:\nElapsed Time 120.5\nUser Time 220.1\nSystem Time 18.2\nPercent CPU 197.2\nContext Switches 12000\nSleeps 20100\n",
		"0.30, other": "2.6.0\nAverage Optimal -j 16 Load Run:\nElapsed Time 120.5\nUser Time 220.1\nSystem Time 18.2\nPercent CPU 197.2\nContext Switches 12000\nSleeps 20100\n",
		"tabs":        "2.6.0\nAverage Half load -j 2 Run (std deviation):\nElapsed Time\t120.5\t(0.5)\nUser Time\t220.1 (1)\nSystem Time\t18.2\nPercent CPU\t197.2\nContext Switches   12000\nSleeps\t20100\n",
		"wrapped":     "2.6.0:\nAverage Half load -j 2 Run (std\ndeviation):\nElapsed Time 120.5 (0.5)\nUser Time 220.1\nSystem Time 18.2\nPercent CPU 197.2\nContext Switches 12000\n(100.5)\nSleeps 20100\n",
	} {
		logs, err := Read(strings.NewReader(text))
		if err != nil || len(logs) != 1 || len(logs[0].Levels) != 1 || logs[0].Release != "2.6.0" {
			t.Errorf("%s: %v %+v", name, err, logs)
			continue
		}
		f := logs[0].Levels[0].Figures
		if got := [metrics]float64{f[0].Mean, f[1].Mean, f[2].Mean, f[3].Mean, f[4].Mean, f[5].Mean}; got != [metrics]float64{120.5, 220.1, 18.2, 197.2, 12000, 20100} {
			t.Errorf("%s: %v", name, got)
		}
		if name == "wrapped" && (f[Context].SD != 100.5 || !f[Context].HasSD) {
			t.Errorf("%+v", f[Context])
		}
	}
	t.Run("two kernels side by side", func(t *testing.T) {
		_, err := Read(strings.NewReader("CFS BFS\nAverage Half load -j 2 Run (std deviation):\nElapsed Time 120.5 (0.5)   118.2 (0.4)\n"))
		if err == nil || !strings.Contains(err.Error(), "line 3") || !strings.Contains(err.Error(), "side by side") {
			t.Error(err)
		}
	})
	t.Run("errors", func(t *testing.T) {
		if _, err := Read(strings.NewReader("real 0m1\n")); !errors.Is(err, ErrNoLevel) {
			t.Error(err)
		}
		_, err := Read(strings.NewReader("d\nr\nAverage x Run (std deviation):\nUser Time inf\n"))
		if err == nil || !strings.Contains(err.Error(), "line 4") {
			t.Error(err)
		}
	})
}

func TestUnpoolMissing(t *testing.T) {
	first := newLevel("Optimal load -j 4")
	first.Pooled = true
	if f := Unpool([]Level{first}, 5)[0].Figures[User]; !strings.Contains(f.Missing, "not in the log") {
		t.Errorf("%+v", f)
	}
	a := Figure{Mean: 10, SD: 1, HasSD: true}
	if f := unpool(a, Figure{Mean: 1, SD: 1, HasSD: true}, 5, 6, 1); f.Missing == "" {
		t.Errorf("less than nothing: %+v", f)
	}
}

// pooled makes a log as the script would print it: level after level, all but
// the elapsed time over all runs so far.
func pooled(levels [][metrics][]float64) Log {
	log := Log{Date: "today", Release: "6.1"}
	var all [metrics][]float64
	for i, runs := range levels {
		l := Level{Name: fmt.Sprintf("Level %d", i)}
		for m := range metrics {
			all[m] = append(all[m], runs[m]...)
			of := all[m]
			if m == Elapsed {
				of = runs[m]
			}
			l.Figures[m] = Mean(of)
		}
		log.Levels = append(log.Levels, l)
	}
	return log
}

// What the script pools and prints with six digits, Unpool takes apart again.
func TestUnpoolProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "runs")
		var levels [][metrics][]float64
		for range rapid.IntRange(2, 4).Draw(t, "levels") {
			var runs [metrics][]float64
			base := rapid.IntRange(1000, 9000).Draw(t, "base")
			for m := range metrics {
				for range n {
					runs[m] = append(runs[m], float64(base+rapid.IntRange(0, 90).Draw(t, "v"))*m.grid())
				}
			}
			levels = append(levels, runs)
		}
		var text bytes.Buffer
		if err := Write(&text, pooled(levels)); err != nil {
			t.Fatal(err)
		}
		logs, err := Read(&text)
		if err != nil {
			t.Fatal(err)
		}
		for i := range logs[0].Levels {
			logs[0].Levels[i].Pooled = i > 0 // whatever the made-up shares say
		}
		for i, l := range Unpool(logs[0].Levels, n) {
			for m := range metrics {
				f, want := l.Figures[m], Mean(levels[i][m]).Mean
				if i > 0 && m > Elapsed && math.Abs(f.Mean-want) > f.Open+1e-6 {
					t.Fatalf("level %d, %s: %+v, want %v", i, m, f, want)
				}
			}
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"quad.log", "one.log", "failed.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		logs, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, l := range logs {
			Unpool(l.Levels, 5)
			if err := Write(&bytes.Buffer{}, l); err != nil {
				t.Fatal(err)
			}
		}
	})
}
