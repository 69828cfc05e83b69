package report

import (
	"encoding/json"
	"strings"
	"testing"

	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// From the journal to the verdict line: a clear win, a tie, too few boots, a
// kernel that did not boot, as the real judgement finds them.
func TestFromTheJournalToTheVerdict(t *testing.T) {
	l := newLab(t, "whole")
	rate := workloads.Metric{Name: "rate", Unit: "Mbit/s", Better: workloads.HigherIsBetter, Primary: true}
	kernels := []string{"cfs", "win", "tie", "few", "dead"}
	l.target(results.PlannedTarget{Name: "malta", Arch: "mipsle"})
	l.cells("malta", kernels, "iperf.to_target", []string{"default"}, 7, 3, rate)
	l.plan.Design.Order = "interleaved"
	for block := 1; block <= 7; block++ {
		for _, k := range kernels {
			if k == "few" && block > 2 {
				continue
			}
			if k == "dead" {
				n := l.bootAs("malta", results.Boot{Kernel: k, Block: block, Outcome: results.BootFailed, Stage: "kernel", Reason: "panic", LastLines: []string{"Attempted to kill init!"}})
				l.trial(slot("malta", k, "iperf.to_target", "default", block, n, 1), results.BootFailed, "panic", nil, nil)
				continue
			}
			boot := l.booted("malta", k, "6.1", "cfs", block)
			for repeat := 1; repeat <= 3; repeat++ {
				x := 23.4 * (1 + float64((block*5+repeat*3+len(k))%7)/5000)
				if k == "win" {
					x *= 1.124
				}
				l.trial(slot("malta", k, "iperf.to_target", "default", block, boot, repeat), results.OK, "", parsed([]workloads.Metric{rate}, x), nil)
			}
		}
	}
	l.end("malta")
	run := l.done()
	text := renderAs(t, run, Options{})
	for _, want := range []string{"faster: rate +12.40 %", "same: rate ", "inconclusive: rate ", "did not boot", "7 x 7 boots", "7 x 2 boots", "most worth more boots"} {
		if answer, _, _ := strings.Cut(text, "\nComparisons\n"); !strings.Contains(strings.Join(strings.Fields(answer), " "), want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	checkText(t, "text", text)
	out := renderAs(t, run, Options{Format: "json"})
	fits(t, out)
	var d Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	want := map[string]stats.Verdict{"win": stats.Faster, "tie": stats.Same, "few": stats.Inconclusive, "dead": stats.DidNotBoot}
	for _, c := range d.Judgement.Comparisons {
		if c.Primary && want[c.Kernel] != c.Verdict {
			t.Errorf("%s is %s: %s", c.Kernel, c.Verdict, c.Sentence)
		}
		delete(want, c.Kernel)
	}
	if len(want) > 0 {
		t.Errorf("not compared: %v", want)
	}
	validXML(t, renderAs(t, run, Options{Format: "junit"}))
}
