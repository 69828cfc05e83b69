package report

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// night makes runs of many cells.
type night struct {
	*lab
	rng                *rand.Rand
	kernels, scenarios []string
	rate, task         []workloads.Metric
	boots, repeats     int
	many               bool // then only the files of what is drawn are written: they take long
}

// cellsRun is a run of about n cells with every kind of end in it: kernels that
// differ, that do not, that never boot; trials that fail; vmstat of each trial.
func cellsRun(t *testing.T, n int) *results.Run {
	t.Helper()
	l := &night{lab: newLab(t, "overnight"), rng: rand.New(rand.NewPCG(1, 2)), boots: 6, repeats: 2, many: n > 100,
		kernels: []string{"cfs", "eevdf", "bfs_2_6_31", "never"}, scenarios: []string{"j1", "j3", "half_load", "optimal_load"}}
	l.rate = []workloads.Metric{{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}, m("retransmits", "count", workloads.LowerIsBetter)}
	l.task = []workloads.Metric{{Name: "LTMM.user", Unit: "s", Better: workloads.LowerIsBetter, Primary: true}, m("LTMM.wall", "s", workloads.LowerIsBetter), m("involuntary", "count", workloads.Informative)}
	if l.many {
		l.boots, l.repeats = 8, 1
	}
	if n < 20 {
		l.kernels, l.scenarios = l.kernels[:2], nil
	}
	for _, k := range l.kernels {
		l.kernel(k, strings.Split(k, "_")[0])
	}
	for i := range max(1, n/20) {
		name := fmt.Sprintf("target%02d", i+1)
		l.target(results.PlannedTarget{Name: name, Arch: "amd64", Boot: "qemu", HostBound: i == 7})
		l.cells(name, l.kernels, "iperf.to_target", []string{"default"}, l.boots, l.repeats, l.rate...)
		l.cells(name, l.kernels, "crunch.ltm", l.scenarios, l.boots, l.repeats, l.task...)
		for block := 1; block <= l.boots; block++ {
			for k := range l.kernels {
				l.inBoot(i, k, name, block)
			}
		}
		l.end(name)
	}
	return l.done()
}

// inBoot is one boot of kernel k on target i, and its trials.
func (l *night) inBoot(i, k int, target string, block int) {
	kernel := l.kernels[k]
	if kernel == "never" {
		l.neverBoots(target, block)
		return
	}
	boot := l.booted(target, kernel, "6."+fmt.Sprint(k)+".0-"+kernel, strings.Split(kernel, "_")[0], block)
	gain := (1 + 0.04*float64(k)*float64((i+k)%3-1)) * math.Exp(0.006*l.rng.NormFloat64())
	if l.many {
		gain = (1 + 0.04*float64(k)*float64((i+k)%3-1)) * math.Exp(0.006*[]float64{-1.2, 0.5, 0, -0.4, 1.3, 0.2, -0.3, 0.9}[block-1])
	}
	within := func() float64 {
		if l.many {
			return gain
		}
		return gain * math.Exp(0.003*l.rng.NormFloat64())
	}
	ran := func(s results.Slot, p *workloads.Parsed, cs float64) {
		if !l.many || block == 3 || block == 6 {
			l.raw(s, "vmstat.csv", vmstatCSV(l.rng, 60, cs))
		}
		l.trial(s, results.OK, "", p, activityOf(k))
	}
	for repeat := 1; repeat <= l.repeats; repeat++ {
		ran(slot(target, kernel, "iperf.to_target", "default", block, boot, repeat), parsed(l.rate, 94*within(), float64(l.rng.IntN(3))), 400*float64(k+1))
		for j, sc := range l.scenarios {
			s := slot(target, kernel, "crunch.ltm", sc, block, boot, repeat)
			if kernel == "eevdf" && sc == "j3" && block == 2 {
				l.trial(s, results.Failed, "exit status 139", nil, nil)
				continue
			}
			ran(s, parsed(l.task, float64(j+1)*60/within(), float64(j+1)*61/within(), 7), 40*float64(k+1))
		}
	}
}

func activityOf(k int) *results.Activity {
	return &results.Activity{Samples: 60, Seconds: 60, Switches: 400 * float64(k+1), Interrupts: 250, User: 60, System: 30, Idle: 10, Missing: []string{"st"}}
}

func (l *lab) neverBoots(target string, block int) {
	l.bootAs(target, results.Boot{Kernel: "never", Block: block, Outcome: results.BootFailed, Stage: "kernel", Reason: "panic: VFS: Unable to mount root fs on unknown-block(0,0)",
		Record:    targets.BootRecord{Kernel: "never"},
		LastLines: []string{"[    1.234567] List of all partitions:\r", "[    1.234600] No filesystem could mount root, tried: \r", "[    1.234700] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\r"}})
}

func vmstatCSV(rng *rand.Rand, rows int, cs float64) string {
	var b strings.Builder
	b.WriteString("mono_ns,seconds,r,b,swpd,free,buff,cache,si,so,bi,bo,in,cs,us,sy,id,wa,st,gu,note\n")
	for i := range rows {
		us := 55 + 20*math.Sin(float64(i)/9) + 5*rng.Float64()
		sy := 20 + 5*rng.Float64()
		fmt.Fprintf(&b, "%d,1,2,0,0,100,0,100,0,0,0,0,%.3f,%.3f,%.1f,%.1f,%.1f,0,n/a,0,\n", i*1e9, 250+rng.Float64()*40, cs*(1+0.3*rng.Float64()), us, sy, 100-us-sy)
	}
	return b.String()
}

// htmlOf renders a run.
func htmlOf(t testing.TB, run *results.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, run, Options{Format: "html"}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// judged is a document with a comparison for every verdict and every awkward number.
func judged() *Document {
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	wall := workloads.Metric{Name: "wall", Unit: "s", Better: workloads.LowerIsBetter, Primary: true}
	num := stats.Num
	j := &compare.Judgement{Rules: stats.Defaults()}
	add := func(kernel string, m workloads.Metric, v stats.Verdict, change, low, high float64) *compare.Comparison {
		c := compare.Comparison{Key: compare.Key{Target: "router", Workload: "iperf.to_target", Scenario: "default", Kernel: kernel, Baseline: "cfs"},
			Metric: m, Primary: true, Verdict: v, Sentence: "This is the sentence of " + kernel + ".", Effect: 0.01,
			Comparison: stats.Comparison{Scale: stats.Ratio, Boots: [2]int{5, 5}, Change: num(change), Low: num(low), High: num(high), Low90: num(low), High90: num(high), HalfWidth: num((high - low) / 2)}, Holm: num(0.01)}
		j.Comparisons = append(j.Comparisons, c)
		return &j.Comparisons[len(j.Comparisons)-1]
	}
	add("bfs", rate, stats.Faster, 0.392, 0.30, 0.48).Moved = []compare.Moved{{Counter: "context switches", Sentence: "Context switches rose from 4.8/s to 12/s beside it."}}
	add("slow", wall, stats.Slower, 0.20, 0.15, 0.25)
	add("alike", rate, stats.Same, 0.001, -0.004, 0.006)
	add("none", rate, stats.NoEvidence, 0.006, -0.003, 0.015)
	add("wide", rate, stats.Inconclusive, 0.02, -0.9999999, 1e300)
	add("zero", rate, stats.Inconclusive, -1, -1, -1)
	add("bad", rate, stats.Invalid, -0.03, -0.05, -0.01).Findings = []results.Finding{{Rule: "flash-errors", Hard: true, Text: "The kernel log has flash errors."}}
	c := add("gone", rate, stats.DidNotBoot, 0, 0, 0)
	c.Change, c.Low, c.High = stats.Missing("did not boot"), stats.Missing("did not boot"), stats.Missing("did not boot")
	c = add("loss", wall, stats.NoEvidence, 0, -0.5, 0.5)
	c.Scale = stats.Difference
	add("unjudged", rate, "", 0.1, 0.05, 0.15)
	j.Worth = []compare.Worth{{Key: j.Comparisons[4].Key, Metric: "rate", Boots: 3, Why: "Its interval is the widest.", Command: "kernsweep rerun 2026-overnight --target router --kernel wide"}}
	j.Overall = []compare.Overall{{Target: "router", Kernel: "bfs", Baseline: "cfs", Blocks: 5, Gain: num(0.3), Low: num(0.2), High: num(0.4), Sentence: "Over 2 workloads in 5 blocks bfs is 30 % better than cfs (20 % to 40 %)."}}
	j.Notes = []string{"Order and kernel cannot be told apart: the blocks were not interleaved."}
	j.Findings = []results.Found{{Finding: results.Finding{Rule: "config-differs", Text: "The kernels are configured differently beyond the scheduler.", Evidence: "3 options", Threshold: "none"},
		Target: "router", Kernel: "bfs", Against: "cfs", Detail: []string{"CONFIG_HZ: 100 beside 1000", "CONFIG_PREEMPT: n beside y", "CONFIG_NO_HZ: y beside n"}},
		{Finding: results.Finding{Rule: "throttled", Hard: true, Text: "The CPU was throttled.", Evidence: "12 events", Threshold: "0 events"}, Target: "router", Boot: 3, Trials: 2}}
	return &Document{Format: DocumentFormat, Run: results.RunMeta{Name: "20261130T220000Z-overnight-7f3a", Sweep: "overnight", Created: t0, Who: "kim", Host: "bench1", Version: "0.1",
		Images: map[string]string{"images/a.elf": strings.Repeat("ab", 32)}, Agents: map[string]string{"go/mipsle": strings.Repeat("cd", 32)}}, Judgement: j,
		Sessions: []results.Session{{Began: t0}}}
}

func htmlOfDoc(t testing.TB, d *Document) []byte {
	t.Helper()
	run := &results.Run{}
	var b bytes.Buffer
	if err := writeHTML(&b, &source{run: run, doc: d}, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
