package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// large is the shape of a run that is written as fast as a disk takes it.
type large struct {
	targets, kernels, scenarios, boots, repeats int
	each                                        int // members of the series behind each value
	rows                                        int // of each trial's vmstat.csv
}

// The shapes that a report is judged by.
func shapes() map[string]large {
	return map[string]large{
		"1000 trials of 1000 rows": {targets: 1, kernels: 2, scenarios: 10, boots: 10, repeats: 5, rows: 1000},
		"one cell of 1e6 values":   {targets: 1, kernels: 2, scenarios: 1, boots: 5, repeats: 1, each: 1e5},
		"100000 trials":            {targets: 4, kernels: 5, scenarios: 25, boots: 20, repeats: 10},
	}
}

// writer numbers records and writes them.
type writer struct {
	tb   testing.TB
	out  *bufio.Writer
	seq  int
	lane map[string]int
}

func (w *writer) add(r results.Record) {
	w.seq++
	r.Seq, r.At, r.UpMS = w.seq, t0.Add(time.Duration(w.seq)*time.Second), int64(w.seq)*1000
	if r.Lane != "" {
		w.lane[r.Lane]++
		r.LaneSeq = w.lane[r.Lane]
	}
	line, err := results.EncodeLine(r)
	if err == nil {
		_, err = w.out.Write(line)
	}
	if err != nil {
		w.tb.Fatal(err)
	}
}

// build writes a run directory of the shape.
func (g large) build(tb testing.TB) *results.Run {
	tb.Helper()
	run, err := results.Create(tb.TempDir(), "large", results.RunMeta{Who: "kim", Host: "bench1", Version: "0.1"}, t0)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := os.Create(filepath.Join(run.Dir(), "journal.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := &writer{tb: tb, out: bufio.NewWriter(f), lane: map[string]int{}}
	ms := []workloads.Metric{{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}, m("seconds", "s", workloads.LowerIsBetter),
		m("switches", "count", workloads.Informative)}
	p := results.PlanSummary{Sweep: "large", Metrics: map[string][]workloads.Metric{}}
	w.add(results.Record{Kind: results.KindRun, Note: results.NoteBegan})
	for t := range g.targets {
		target := fmt.Sprintf("target%d", t)
		p.Targets = append(p.Targets, results.PlannedTarget{Name: target, Arch: "amd64"})
		w.add(results.Record{Lane: target, Kind: results.KindLane, Note: results.NoteBegan})
		boot := 0
		for k := range g.kernels {
			for s := range g.scenarios {
				p.Cells = append(p.Cells, results.PlannedCell{Cell: g.cell(target, k, s), Baseline: "kernel0", Boots: g.boots, Repeat: g.repeats})
			}
		}
		for block := 1; block <= g.boots; block++ {
			for k := range g.kernels {
				boot++
				g.boot(w, run, target, k, block, boot, ms)
			}
		}
		w.add(results.Record{Lane: target, Kind: results.KindLane, Note: results.NoteEnded})
	}
	for s := range g.scenarios {
		p.Metrics["exec.x."+g.cell("", 0, s).Scenario] = ms
	}
	w.add(results.Record{Kind: results.KindRun, Note: results.NoteEnded})
	if err := w.out.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := run.WritePlan(p, nil); err != nil {
		tb.Fatal(err)
	}
	return run
}

func (g large) cell(target string, kernel, scenario int) results.Cell {
	return results.Cell{Target: target, Kernel: fmt.Sprintf("kernel%d", kernel), Workload: "exec.x", Scenario: fmt.Sprintf("s%02d", scenario)}
}

func (g large) boot(w *writer, run *results.Run, target string, k, block, boot int, ms []workloads.Metric) {
	kernel := g.cell(target, k, 0).Kernel
	w.add(results.Record{Lane: target, Kind: results.KindBoot, Boot: &results.Boot{Number: boot, Kernel: kernel, Block: block, Outcome: results.OK,
		Record: targets.BootRecord{Kernel: kernel, Release: "6.1", Proven: true, BootID: fmt.Sprintf("00000000-0000-4000-8000-%012d", boot), Scheduler: targets.Scheduler{Name: "cfs"}}}})
	for s := range g.scenarios {
		for repeat := 1; repeat <= g.repeats; repeat++ {
			slot := results.Slot{Cell: g.cell(target, k, s), Block: block, Repeat: repeat, Boot: boot}
			rec := results.Record{Lane: target, Kind: results.KindStarted, Slot: &slot, Attempt: 1}
			w.add(rec)
			rec.Kind, rec.Note = results.KindEnded, "exit status 0 after 10.0 s"
			w.add(rec)
			x := 100 + float64((w.seq*7919)%1000)/1000
			rec.Kind, rec.Note, rec.Outcome = results.KindJudged, "", results.OK
			rec.Parsed = parsed(ms, x, 1000/x, float64(w.seq))
			rec.Parsed.Warnings = []string{"procs_running was 2 before the start"}
			for i := range g.each {
				rec.Parsed.Values[0].Each = append(rec.Parsed.Values[0].Each, x+float64((i*7919)%1000)/997)
			}
			rec.Summary = &results.Activity{Samples: 10, Seconds: 10, Switches: 4812.5, Interrupts: 266.8, User: 33.8, System: 66.2, Missing: []string{"st"}}
			w.add(rec)
			if g.rows > 0 {
				g.samples(w.tb, run.TrialDir(slot, 1))
			}
		}
	}
}

func (g large) samples(tb testing.TB, dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	text := []byte("mono_ns,seconds,r,b,swpd,free,buff,cache,si,so,bi,bo,in,cs,us,sy,id,wa,st,gu,note\n")
	for i := range g.rows {
		text = fmt.Appendf(text, "%d,1.001,1,0,0,15892,1684,5868,0,0,0,0,268,%d,31.25,68.75,0,0,0,n/a,\n", int64(i+1)*1001e6, i%97)
	}
	if err := os.WriteFile(filepath.Join(dir, "vmstat.csv"), text, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// heapMB is what the process holds now, in MB.
func heapMB() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64()-s[1].Value.Uint64()) / 1e6
}

// BenchmarkReport prints, beside the time, the MB that were written and those that the
// process held at the end: `go test -bench Report -benchtime 1x`.
func BenchmarkReport(b *testing.B) {
	for name, g := range shapes() {
		for _, format := range []string{"text", "json", "csv", "bench", "samples", "html"} {
			b.Run(name+"/"+format, func(b *testing.B) {
				run := g.build(b)
				for b.Loop() {
					n := &written{}
					if err := Write(n, run, Options{Format: format}); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(n.n)/1e6, "MB-written")
					b.ReportMetric(heapMB(), "MB-held")
				}
			})
		}
	}
}

type written struct{ n int64 }

func (w *written) Write(p []byte) (int, error) { w.n += int64(len(p)); return len(p), nil }

// A large run is reported whole, in every format, in seconds. The time allowed is
// many times that of a quiet machine.
func TestLargeRuns(t *testing.T) {
	for name, g := range shapes() {
		if os.Getenv("KERNSWEEP_LONG") == "" {
			g.boots, g.scenarios, g.each, g.rows = min(g.boots, 2), min(g.scenarios, 5), min(g.each, 1e4), min(g.rows, 100)
		}
		t.Run(name, func(t *testing.T) {
			run := g.build(t)
			for _, format := range Formats() {
				began := time.Now()
				if err := Write(io.Discard, run, Options{Format: format}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("%s took %v", format, took)
				}
			}
		})
	}
}
