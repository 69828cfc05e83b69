package report

import (
	"bytes"
	"strings"
	"testing"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/stats"
)

// Whoever keeps runs elsewhere can paste each command as it is printed.
func TestCommandsNameTheReadersFiles(t *testing.T) {
	src, err := load(verdictRun(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"text", "md", "html", "json", "junit", "verdicts"} {
		var plain, called bytes.Buffer
		for out, as := range map[*bytes.Buffer]string{&plain: "", &called: "kernsweep --runs old"} {
			if err := (&Report{src}).Write(out, Options{Format: f, Kernsweep: as}); err != nil {
				t.Fatal(err)
			}
		}
		had := 0
		for _, verb := range []string{"rerun ", "resume ", "run "} {
			had += strings.Count(plain.String(), "kernsweep "+verb)
			if n := strings.Count(called.String(), "kernsweep "+verb); n > 0 {
				t.Errorf("%s: %d commands to %sdo not name the folder", f, n, verb)
			}
		}
		if n := strings.Count(called.String(), "kernsweep --runs old "); n != had {
			t.Errorf("%s: %d commands name the folder, of %d", f, n, had)
		}
	}
}

// Pasted twice, one command would measure twice as much as it takes.
func TestOneCommandForBothCellsStandsOnce(t *testing.T) {
	src, err := load(verdictRun(t))
	if err != nil {
		t.Fatal(err)
	}
	const again = "kernsweep rerun r --more 3 --target desk --workload crunch.c"
	src.doc.Judgement.Worth = []compare.Worth{{Boots: 3, Why: "wide", Command: again}, {Boots: 3, Why: "wide too", Command: again}}
	for _, f := range []string{"text", "html"} {
		var out bytes.Buffer
		if err := (&Report{src}).Write(&out, Options{Format: f, Width: 100}); err != nil {
			t.Fatal(err)
		}
		if strings.Count(out.String(), again) != 1 || !strings.Contains(out.String(), "(the same command measures both)") {
			t.Errorf("%s:\n%s", f, out.String())
		}
	}
}

// A kernel that stops each time at the same line is one failure, whenever in its
// boot it printed it.
func TestOneCauseWithOtherTimesIsOneFailure(t *testing.T) {
	var list []Failure
	for _, reason := range []string{"[    1.759671] VFS: Cannot open root device", "[    1.769841] VFS: Cannot open root device", "[sda] no caching", "VFS: Cannot open root device"} {
		list = merge(list, Failure{Target: "desk", Kernel: "bfs", Reason: reason})
	}
	if len(list) != 2 || list[0].Count != 3 || list[1].Reason != "[sda] no caching" {
		t.Errorf("%+v", list)
	}
}

// A few verdicts are read at once, without a click for the good ones.
func TestFewVerdictsStandOpen(t *testing.T) {
	p := &page{Doc: &Document{Judgement: &compare.Judgement{Comparisons: []compare.Comparison{{Primary: true, Verdict: stats.Same, Sentence: "same within 1 %"}}}}}
	if p.verdicts(); len(p.Groups) != 1 || !p.Groups[0].Open {
		t.Errorf("one verdict: %+v", p.Groups)
	}
	c := p.Doc.Judgement.Comparisons[0]
	for range fewScenarios {
		p.Doc.Judgement.Comparisons = append(p.Doc.Judgement.Comparisons, c)
	}
	p.Groups = nil
	if p.verdicts(); len(p.Groups) != 1 || p.Groups[0].Open {
		t.Errorf("many of one verdict: %+v", p.Groups)
	}
}

// Where the device's own noise decides what is the same, the text says so.
func TestFloorIsToldInText(t *testing.T) {
	floor := compare.Comparison{Primary: true, Verdict: stats.Same, EffectFrom: "A/A run", Sentence: "same within 2.5 % (the device's own noise: A/A run): wall -0.1 %"}
	plain := compare.Comparison{Primary: true, Verdict: stats.Same, Sentence: "same within 1 %: wall -0.1 %"}
	for _, list := range [][]*compare.Comparison{{&floor}, {&plain, &floor}} {
		var s section
		if (&group{list: list}).lines(&s, "  ", 80); !strings.Contains(strings.Join(s.lines, "\n"), "within 2.5 % (the device's own noise") {
			t.Errorf("%q", s.lines)
		}
	}
	var s section
	if (&group{list: []*compare.Comparison{&plain, &plain}}).lines(&s, "  ", 80); len(s.lines) != 1 {
		t.Errorf("%q", s.lines)
	}
}
