package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
	"kernsweep/targets/targetstest"
)

// A rerun takes patterns, among the targets that its run has.
func TestRerunChoosesByPattern(t *testing.T) {
	lab := &config.Lab{}
	for _, n := range []string{"r1", "r2", "r3", "desk"} {
		lab.Targets = append(lab.Targets, &config.Target{Target: targets.Target{Name: n}})
	}
	for words, want := range map[string]string{
		"r*": "r1 r3", "all": "r1 r3 gone?", "all,!r1": "r3", "r1": "r1", "gone": "gone", "r2": "r2", // the plan refuses r2, by name
		"r2,desk": "error: the run has none of these targets; it has r1, r3, gone", "x*": `error: no target "x*"`,
	} {
		r := rerun{whole: &plan.Plan{Lanes: []plan.Lane{{Target: "r1"}, {Target: "r3"}, {Target: "gone"}}}}
		r.Targets = []string{words}
		err := r.choose(lab)
		if text, ok := strings.CutPrefix(want, "error: "); ok {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", words, err)
			}
			continue
		}
		want = strings.TrimSuffix(want, " gone?") // of what the lab has no more, "all" knows nothing
		if err != nil || !slices.Equal(r.Targets, strings.Fields(want)) {
			t.Errorf("%s: %q, %v, want %s", words, r.Targets, err, want)
		}
	}
}

// BenchmarkExec is `exec true` by the number of targets, all of one sshd on this
// machine, whose work is in the figure.
func BenchmarkExec(b *testing.B) {
	sshd := targetstest.SSHD(b, "MaxStartups 500")
	for _, n := range []int{1, 16, 64} {
		var blocks []string
		for _, p := range doors(b, sshd, n) {
			blocks = append(blocks, sshBlock(b, sshd, p))
		}
		file := labAt(b, blocks...)
		b.Run(fmt.Sprintf("targets=%d", n), func(b *testing.B) {
			for b.Loop() {
				env := func(string) (string, bool) { return "", false }
				if status := execute(b.Context(), []string{"-f", file, "exec", "--fold", "all", "--", "true"}, nil, io.Discard, b.Output(), env); status != 0 {
					b.Fatal(status)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*n), "ms/target")
		})
	}
}
