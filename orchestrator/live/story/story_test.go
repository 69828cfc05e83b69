package story

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
	"kernsweep/workloads"
)

var t0 = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }

// night is a run of one lane: a boot that panics, and one whose second trial fails.
type night struct {
	run     *results.Run
	records []results.Record
}

func (n *night) add(s float64, r results.Record) {
	r.Seq, r.At, r.Lane = len(n.records)+1, at(s), "box"
	n.records = append(n.records, r)
}

func (n *night) file(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// says records a console of lines, each so many milliseconds after the one before.
func (n *night) says(t *testing.T, boot int, from float64, ms int, lines ...string) {
	t.Helper()
	base := filepath.Join(n.run.BootDir("box", boot), "console")
	n.file(t, base+".start", at(from).Format(time.RFC3339Nano)+"\n")
	n.file(t, base+".log", strings.Join(lines, "\r\n")+"\r\n")
	timing := ""
	for _, l := range lines[1:] {
		timing += fmt.Sprintf("%.6f %d\n", float64(ms)/1000, len(l)+2)
	}
	n.file(t, base+".timing", timing)
}

func newNight(t *testing.T) *night {
	t.Helper()
	run, err := results.Create(t.TempDir(), "s", results.RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	n := &night{run: run}
	boot := func(number int, kernel string) *results.Boot {
		return &results.Boot{Number: number, Kernel: kernel, Block: 1}
	}
	n.add(0, results.Record{Kind: results.KindLane, Note: results.NoteBegan})
	n.add(1, results.Record{Kind: results.KindPhase, Phase: "asked", Boot: boot(1, "bfs")})
	n.add(2, results.Record{Kind: results.KindPhase, Phase: "kernel", Boot: boot(1, "bfs")})
	bad := boot(1, "bfs")
	bad.Outcome, bad.Stage, bad.Reason = results.BootFailed, "panic", "[    9.0] Kernel panic - not syncing: VFS"
	n.add(60, results.Record{Kind: results.KindBoot, Boot: bad})
	n.add(61, results.Record{Kind: results.KindNote, Note: "evil \x1b[2J note"})
	n.add(70, results.Record{Kind: results.KindPhase, Phase: "asked", Boot: boot(2, "cfs")})
	good := boot(2, "cfs")
	good.Outcome, good.Record = results.OK, targets.BootRecord{Release: "6.1", Proven: true, Scheduler: targets.Scheduler{Name: "cfs"}}
	n.add(80, results.Record{Kind: results.KindBoot, Boot: good})
	for i, o := range []results.Outcome{results.OK, results.Failed} {
		s := results.Slot{Cell: results.Cell{Target: "box", Kernel: "cfs", Workload: "exec.up", Scenario: "default"}, Block: 1, Repeat: i + 1, Boot: 2}
		n.add(81+float64(10*i), results.Record{Kind: results.KindStarted, Slot: &s, Attempt: 1})
		r := results.Record{Kind: results.KindJudged, Slot: &s, Attempt: 1, Outcome: o, Parsed: &workloads.Parsed{}}
		if o == results.Failed {
			r.Reason = "it exited with status 3"
			n.file(t, filepath.Join(run.TrialDir(s, 1), "stderr"), "oops \x1b]0;evil\x07\n")
		}
		n.add(85+float64(10*i), r)
	}
	n.add(100, results.Record{Kind: results.KindLane, Note: results.NoteEnded})
	var lines []string
	for i := range 100 {
		lines = append(lines, fmt.Sprintf("bfs line %d", i))
	}
	lines[70] = "[    9.0] Kernel panic - not syncing: VFS"
	lines[71] = "\x1b[31mred\x1b[0m \u202eleft"
	n.says(t, 1, 1, 100, lines...) // until 10.9 s
	n.says(t, 2, 70, 1000, "cfs first", "cfs second", "cfs in the trial", "cfs last")
	return n
}

func text(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%d %.1f %s %s\n", l.Boot, l.SinceS, l.Kind, l.Text)
	}
	return b.String()
}

func (n *night) tell(t *testing.T, o Options) string {
	t.Helper()
	lines, err := Tell(n.run, n.records, "box", o)
	if err != nil {
		t.Fatal(err)
	}
	return text(lines)
}

func TestStoryInOrder(t *testing.T) {
	got := newNight(t).tell(t, Options{})
	order := []string{"lane began", "boot 1: kernel bfs is asked for", "1 0.0 console bfs line 0", "1 1.0 phase kernel", "console bfs line 64",
		"console [    9.0] Kernel panic", "console red ·left", "lines of the console are left out", "1 9.9 console bfs line 99",
		"1 59.0 boot boot 1: kernel bfs: BOOT-FAILED at panic: [    9.0] Kernel panic", "note evil ·[2J note", "boot 2: kernel cfs is asked for",
		"2 0.0 console cfs first", "2 3.0 console cfs last", "boot 2: kernel cfs runs: 6.1, scheduler cfs, proven", "trial exec.up default begins",
		"trial exec.up default: ok", "trial exec.up default #2: failed: it exited with status 3", "output stderr: oops ·]0;evil·", "lane ended"}
	rest := got
	for _, want := range order {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", want, got)
		}
		rest = after
	}
	if strings.Contains(got, "bfs line 40\n") {
		t.Error("the middle of a long stretch is told")
	}
	if strings.ContainsAny(got, "\x1b\x07\u202e") {
		t.Errorf("not inert: %q", got)
	}
}

func TestStoryInPart(t *testing.T) {
	n := newNight(t)
	for o, c := range map[Options][2]string{
		{Boot: 2}:                     {"cfs last", "kernel bfs"},
		{Kernel: "bfs"}:               {"Kernel panic", "kernel cfs"},
		{Failed: true}:                {"output stderr: oops", "default: ok"},
		{Failed: true, Boot: 1}:       {"Kernel panic", "lane"},
		{Console: true}:               {"bfs line 40\n", "left out"},
		{Console: true, Boot: 2}:      {"cfs second", "bfs"},
		{Kernel: "none of this kind"}: {"", "boot"},
	} {
		got := n.tell(t, o)
		if !strings.Contains(got, c[0]) || strings.Contains(got, c[1]) {
			t.Errorf("%+v: with %q, without %q, got:\n%s", o, c[0], c[1], got)
		}
	}
}

// A recording whose controller died has tails, and a torn timing.
func TestStoryOfABrokenRecording(t *testing.T) {
	n := newNight(t)
	base := filepath.Join(n.run.BootDir("box", 2), "console")
	n.file(t, base+".tail.2", "in the second tail\n")
	n.file(t, base+".tail.1", "in the first tail\nhalf a")
	n.file(t, base+".tail.1.timing", "2.0 18\nnonsense\n-5 x\n1e99 7\n0.5")
	got := n.tell(t, Options{Boot: 2})
	for _, want := range []string{"2 5.0 console in the first tail", "console half ain the second tail"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	for _, suffix := range []string{".log", ".start", ".timing"} {
		if err := os.Remove(base + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if got := n.tell(t, Options{Boot: 2}); !strings.Contains(got, "kernel cfs runs") {
		t.Errorf("without a console:\n%s", got)
	}
}

// Who follows gets what comes, once.
func TestFollow(t *testing.T) {
	n := newNight(t)
	w, err := n.run.OpenWriterContext(context.Background(), "test", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put := func(r results.Record) {
		t.Helper()
		r.Lane = "box"
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	put(results.Record{Kind: results.KindPhase, Phase: "asked", Boot: &results.Boot{Number: 2, Kernel: "cfs"}})
	j, err := n.run.Journal()
	if err != nil {
		t.Fatal(err)
	}
	f := Follow(n.run, "box", j.Records)
	next := func() string {
		t.Helper()
		lines, err := f.Next(at(200))
		if err != nil {
			t.Fatal(err)
		}
		return text(lines)
	}
	if got := next(); got != "" {
		t.Errorf("told again:\n%s", got)
	}
	log, err := os.OpenFile(filepath.Join(n.run.BootDir("box", 2), "console.log"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.WriteString("new line\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	put(results.Record{Kind: results.KindNote, Note: "after it"})
	got := next()
	if a, b := strings.Index(got, "console new line\n"), strings.Index(got, "note after it"); a < 0 || b < a || strings.Contains(got, "half") {
		t.Errorf("%s", got)
	}
	if got := next(); got != "" {
		t.Errorf("told again:\n%s", got)
	}
}
