package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const anyName = "20261130T220000Z-RUN"

// anyID is the random id of a run in JSON.
var anyID = regexp.MustCompile(`("id": ")[0-9a-f]+"`)

// golden compares reports with testdata/NAME.txtar: a file per format, "text",
// "text+vmstat", "csv", "json", "md".
//
// The judgement is the test's own (nil: none), so that a golden shows how this
// package renders one and not how another makes it.
func golden(t *testing.T, name string, run *results.Run, j *compare.Judgement, formats ...string) {
	t.Helper()
	src, err := load(run)
	if err != nil {
		t.Fatal(err)
	}
	if src.doc.Judgement = j; j == nil {
		src.doc.Judgement = &compare.Judgement{Rules: stats.Defaults(), Comparisons: []compare.Comparison{}}
	}
	path := filepath.Join("testdata", name+".txtar")
	got := &txtar.Archive{}
	for _, f := range formats {
		base, vm := strings.CutSuffix(f, "+vmstat")
		base, secondary := strings.CutSuffix(base, "+secondary")
		var b bytes.Buffer
		how, o, err := Options{Format: base, VMStat: vm, Secondary: secondary}.format()
		if err == nil {
			err = how.write(&b, src, o)
		}
		if err != nil {
			t.Fatal(err)
		}
		if base == "json" {
			fits(t, b.String())
		}
		text := anyID.ReplaceAllString(strings.ReplaceAll(b.String(), run.Name(), anyName), `${1}ID"`)
		checkText(t, f, text)
		got.Files = append(got.Files, txtar.File{Name: f, Data: []byte(text)})
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(txtar.Format(got))); diff != "" {
		t.Errorf("%s (rewrite with -update, after reading the difference):\n%s", path, diff)
	}
}

// checkText holds of every report: nothing that moves a cursor, no line too
// wide, no NaN.
func checkText(t *testing.T, format, text string) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(format, "text") && columns(line) > 80 {
			t.Errorf("%s: %d columns: %s", format, columns(line), line)
		}
		for _, r := range line {
			if hidden(r) {
				t.Errorf("%s: control character %q in %q", format, r, line)
			}
		}
	}
	if strings.Contains(text, "NaN") {
		t.Errorf("%s: has NaN", format)
	}
}

// The router posting: three runs of each kernel in one boot, with raw output.
func TestRouterThroughput(t *testing.T) {
	l := newLab(t, "router")
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	ms := []workloads.Metric{rate, m("moved", "MiB", workloads.HigherIsBetter)}
	l.target(results.PlannedTarget{Name: "wl500gpv2", Arch: "mipsle", Boot: "cfe", Boots: 2})
	l.kernel("cfs", "cfs")
	l.kernel("bfs", "bfs")
	l.cells("wl500gpv2", []string{"cfs", "bfs"}, "iperf.to_target", []string{"default"}, 1, 3, ms...)
	for _, k := range []struct {
		name        string
		moved, rate []string
		rates, mib  []float64
	}{
		{"cfs", []string{"27.4", "27.3", "27.3"}, []string{"23.0", "22.9", "22.9"}, []float64{23.0, 22.9, 22.9}, []float64{27.4, 27.3, 27.3}},
		{"bfs", []string{"38.2", "38.1", "38.1"}, []string{"32.0", "31.9", "31.9"}, []float64{32.0, 31.9, 31.9}, []float64{38.2, 38.1, 38.1}},
	} {
		boot := l.booted("wl500gpv2", k.name, "2.6.30.5", k.name, 1)
		warm := slot("wl500gpv2", k.name, "iperf.to_target", "default", 1, boot, 0)
		l.trial(warm, results.OK, "", parsed(ms, 1, 1), nil)
		for i := range 3 {
			s := slot("wl500gpv2", k.name, "iperf.to_target", "default", 1, boot, i+1)
			p := parsed(ms, k.rates[i], k.mib[i])
			p.Values[0].Resolution = 0.1
			l.raw(s, "client-stdout", "[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0- 1.0 sec  1.00 MBytes  8.39 Mbits/sec\n"+
				"[  3]  0.0-10.0 sec  "+k.moved[i]+" MBytes  "+k.rate[i]+" Mbits/sec\n")
			l.trial(s, results.OK, "", p, &results.Activity{Samples: 10, Seconds: 10, Switches: 4.8, User: 33.8, System: 66.2, Missing: []string{"st"}})
		}
	}
	l.end("wl500gpv2")
	golden(t, "router", l.done(), nil, "text", "csv", "json")
}

// Figures, boots and plan meet what a kernel that never booted leaves: rows
// that say so, with the last console line.
func TestLatencyWithAKernelThatDoesNotBoot(t *testing.T) {
	l := newLab(t, "wakeup")
	ms := []workloads.Metric{m("runtime", "s", workloads.LowerIsBetter), m("max", "ms", workloads.LowerIsBetter),
		m("mean", "ms", workloads.LowerIsBetter), m("sd", "ms", workloads.LowerIsBetter), m("p99", "ms", workloads.LowerIsBetter),
		m("late.max", "ms", workloads.Informative), m("samples", "count", workloads.Informative), m("p99.9", "ms", workloads.LowerIsBetter)}
	l.target(results.PlannedTarget{Name: "server64", Arch: "amd64", Boot: "qemu", Emulated: true, HostBound: true, Clock: "guest"})
	l.kernel("cfs", "cfs")
	l.kernel("bfs", "bfs")
	l.kernel("half", "cfs")
	l.cells("server64", []string{"cfs", "bfs", "half"}, "latency.make", []string{"jX", "x2"}, 1, 1, ms...)
	boot := l.booted("server64", "cfs", "2.6.31-rc9", "cfs", 1)
	for sc, v := range map[string][]float64{"jX": {100, 951, 462, 267}, "x2": {200, 983, 484, 308}} {
		p := parsed(ms, v...)
		p.Values = append(p.Values, workloads.Value{Metric: ms[4], Missing: "57 samples, 1000 are needed"}, workloads.Value{Metric: ms[5], Value: 3},
			workloads.Value{Metric: ms[6], Value: 57}, workloads.Value{Metric: ms[7], Missing: "57 samples, 10000 are needed"})
		p.Warnings = []string{"sd is that of a uniform distribution"}
		l.trial(slot("server64", "cfs", "latency.make", sc, 1, boot, 1), results.OK, "", p, nil)
	}
	hung := results.Boot{Kernel: "bfs", Block: 1, Outcome: results.BootFailed, Stage: "hang", Reason: "silent for 60 s",
		LastLines: []string{"sd 0:0:0:0: [sda] Attached SCSI disk", " sda: sda1 sda2 \x1b[2J\r"}}
	n := l.bootAs("server64", hung)
	for _, sc := range []string{"jX", "x2"} {
		s := slot("server64", "bfs", "latency.make", sc, 1, n, 1)
		l.add(results.Record{Lane: "server64", Kind: results.KindJudged, Slot: &s, Outcome: results.BootFailed, Reason: "hang"})
	}
	boot = l.bootAs("server64", results.Boot{Kernel: "half", Block: 1, Outcome: results.OK, Record: targets.BootRecord{
		Kernel: "half", Release: "6.1.0", Unproven: "the boot method cannot set a nonce"}})
	l.trial(slot("server64", "half", "latency.make", "jX", 1, boot, 1), results.Failed, "timed out after 10m0s", nil, nil)
	l.end("server64")
	golden(t, "wakeup", l.done(), nil, "text", "csv")
}

// kernbench's blocks, from five runs that have the posting's means and sds.
func TestKernbenchBlocks(t *testing.T) {
	l := newLab(t, "compile")
	names := []string{"elapsed", "user", "system", "percent", "ctx", "sleeps"}
	units := []string{"s", "s", "s", "%", "count", "count"}
	var ms []workloads.Metric
	for i, n := range names {
		ms = append(ms, m(n, units[i], workloads.LowerIsBetter))
	}
	ms[0].Primary = true
	l.target(results.PlannedTarget{Name: "quadcore", Arch: "amd64", Boot: "ssh-reboot"})
	l.kernel("mainline", "cfs")
	l.kernel("ck1", "bfs")
	l.cells("quadcore", []string{"mainline", "ck1"}, "kernbench.defconfig", []string{"half"}, 5, 1, ms...)
	for k, v := range map[string][][2]float64{
		"mainline": {{45.56, 0.100995}, {78.336, 0.0756968}, {10.96, 0.0935414}, {195.6, 0.547723}, {5462.2, 16.5136}, {12578, 13.0958}},
		"ck1":      {{45.826, 0.0931665}, {79.95, 0.0620484}, {9.772, 0.0576194}, {195.2, 0.447214}, {217, 18.775}, {14467.6, 47.8153}},
	} {
		for i, step := range []float64{-2, -1, 0, 1, 2} {
			boot := l.booted("quadcore", k, "2.6.35-"+k, map[string]string{"mainline": "cfs", "ck1": "bfs"}[k], i+1)
			var x []float64
			for _, ms := range v {
				x = append(x, ms[0]+ms[1]*step/1.5811388300841898)
			}
			p := parsed(ms, x...)
			p.Notes = []string{"half load: -j 2"}
			l.trial(slot("quadcore", k, "kernbench.defconfig", "half", i+1, boot, 1), results.OK, "", p, nil)
		}
	}
	l.end("quadcore")
	golden(t, "compile", l.done(), nil, "text")
}
