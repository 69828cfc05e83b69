package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kernsweep/orchestrator/results"
	"kernsweep/targets"
)

// planOf is a plan of lanes with a boot of so many trials each.
func planOf(trials map[string]int, lanes ...string) any {
	type boot struct {
		Trials []struct{} `json:"trials"`
	}
	type lane struct {
		Target   string        `json:"target"`
		Estimate time.Duration `json:"estimate"`
		Boots    []boot        `json:"boots"`
	}
	var p struct {
		Lanes []lane `json:"lanes"`
	}
	for _, l := range lanes {
		p.Lanes = append(p.Lanes, lane{l, time.Hour, []boot{{make([]struct{}, trials[l])}}})
	}
	return p
}

// watched is a run that is written and watched.
type watched struct {
	t   *testing.T
	run *results.Run
	w   *results.Writer
	*Watching
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	run, err := results.Create(t.TempDir(), "night", results.RunMeta{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := run.WritePlan(results.PlanSummary{}, planOf(map[string]int{"a": 2, "b": 3}, "a", "b")); err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return &watched{t, run, w, Watch(run)}
}

func (w *watched) add(recs ...results.Record) {
	w.t.Helper()
	for _, r := range recs {
		r.Seq, r.At = 0, time.Time{}
		if _, err := w.w.Append(w.t.Context(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

// rows says how the lanes stand, a line each.
func (w *watched) rows() string {
	w.t.Helper()
	if _, err := w.Look(); err != nil {
		w.t.Fatal(err)
	}
	v := w.View(time.Now())
	s := string(v.State) + "\n"
	for _, l := range v.Lanes {
		s += fmt.Sprintf("%s %s %s %d/%d %s\n", l.Name, l.State, l.Doing, l.Done, l.Trials, Counted(l.Outcomes))
	}
	return s
}

func session(note string) results.Record { return results.Record{Kind: results.KindRun, Note: note} }

func laneNote(lane, note, reason string) results.Record {
	return results.Record{Kind: results.KindLane, Lane: lane, Note: note, Reason: reason}
}

// A run with every kind of session: what is counted is what the newest plan is about.
func TestWatchingCountsOverSessions(t *testing.T) {
	w := newWatched(t)
	steps := []struct {
		recs []results.Record
		want string
	}{
		{nil, "starting\na waiting waiting 0/2 \nb waiting waiting 0/3 \n"},
		{[]results.Record{session("began"), laneNote("a", "began", ""), judged("a", 0, 1, results.OK, "")},
			"running\na running between trials 1/2 1 ok\nb waiting waiting 0/3 \n"},
		{[]results.Record{laneNote("a", "paused", "ada"), laneNote("b", "began", ""), judged("b", 0, 1, results.Lost, "gone"),
			laneNote("b", "quarantined", "no route"), judged("b", 0, 2, results.Skipped, "given up")},
			"running\na paused between trials 1/2 1 ok\nb quarantined quarantined 2/3 1 lost, 1 skipped\n"},
		{[]results.Record{laneNote("a", "goes on", ""), laneNote("a", "interrupted", ""), session("interrupted: Ctrl-C")},
			"interrupted\na interrupted interrupted 1/2 1 ok\nb quarantined quarantined 2/3 1 lost, 1 skipped\n"},
		// What was done stays done, and a better outcome takes the place of a worse.
		{[]results.Record{session("began: " + results.WhyResume), laneNote("b", "began", ""), judged("b", 0, 1, results.OK, "")},
			"running\na waiting waiting 1/2 1 ok\nb running between trials 2/3 1 ok, 1 skipped\n"},
		{[]results.Record{laneNote("b", "ended", ""), session("ended")}, "ended\na waiting waiting 1/2 1 ok\nb ended ended 2/3 1 ok, 1 skipped\n"},
	}
	for i, s := range steps {
		w.add(s.recs...)
		if d := cmp.Diff(s.want, w.rows()); d != "" {
			t.Errorf("step %d: %s", i, d)
		}
	}
	if err := w.run.WriteSessionPlan(3, planOf(map[string]int{"b": 1}, "b")); err != nil {
		t.Fatal(err)
	}
	w.add(session("began: rerun of what failed"), laneNote("b", "began", ""))
	if d := cmp.Diff("running\nb running beginning 0/1 \n", w.rows()); d != "" {
		t.Errorf("a rerun: %s", d)
	}
	w.add(session("interrupted: Ctrl-C"), session("began: "+results.WhyResume), judged("b", 0, 2, results.OK, ""))
	rerun := "running\nb waiting between trials 1/1 1 ok\n"
	if d := cmp.Diff(rerun, w.rows()); d != "" {
		t.Errorf("a rerun that was resumed: %s", d)
	}
	late := &watched{t, w.run, w.w, Watch(w.run)}
	if d := cmp.Diff(rerun, late.rows()); d != "" {
		t.Errorf("whoever begins to watch now sees something else: %s", d)
	}
}

// Without a plan that can be read the lanes appear as they begin.
func TestWatchingWithoutAPlan(t *testing.T) {
	w := newWatched(t)
	if err := os.WriteFile(filepath.Join(w.run.Dir(), "plan.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.add(session("began"), laneNote("x", "began", ""), judged("x", 0, 1, results.OK, ""))
	if d := cmp.Diff("running\nx running between trials 1/0 1 ok\n", w.rows()); d != "" {
		t.Error(d)
	}
}

// A run whose controller is gone ages no more, and nobody says how long it takes.
func TestViewOfAnEndedRunStandsStill(t *testing.T) {
	w := newWatched(t)
	w.add(session("began"), laneNote("a", "began", ""), session("ended"))
	w.rows()
	now := time.Now()
	one, two := w.View(now), w.View(now.Add(time.Hour))
	if d := cmp.Diff(one, two); d != "" {
		t.Errorf("an hour later: %s", d)
	}
	if one.LeftS != nil || one.Lanes[0].DoingS != nil {
		t.Errorf("%+v", one)
	}
	w.add(session("began: "+results.WhyResume), laneNote("a", "began", ""))
	if err := w.w.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.rows(); !strings.HasPrefix(got, string(ControlDied)+"\n") {
		t.Errorf("its controller died: %s", got)
	}
}

// Names and texts of a run are inert in its view.
func TestViewIsInert(t *testing.T) {
	evil := "\x1b[2J\x07\u202e\u200b\u009b2J\r\n"
	tr := NewTracker(at(0), []Lane{{Name: "a" + evil, Trials: 1}})
	tr.Observe(results.Record{Lane: "a" + evil, At: at(1), Kind: results.KindLane, Note: results.NoteBegan})
	tr.Observe(results.Record{Lane: "a" + evil, At: at(1), Kind: results.KindPhase, Phase: "asked" + targets.Phase(evil), Boot: &results.Boot{Kernel: evil, Number: 1}})
	tr.Observe(results.Record{Lane: "a" + evil, At: at(2), Kind: results.KindNote, Note: evil})
	inert := func() {
		t.Helper()
		if text := fmt.Sprintf("%+v", tr.View(at(3), true)); strings.ContainsAny(text, "\x1b\x07\u202e\u200b\u009b\r\n") {
			t.Errorf("%q", text)
		}
	}
	inert()
	tr.Observe(results.Record{Lane: "a" + evil, At: at(2), Kind: results.KindLane, Note: results.NoteQuarantined, Reason: evil})
	inert()
	tr.Observe(results.Record{Lane: "a" + evil, At: at(2), Kind: results.KindLane, Note: evil})
	inert()
}

// The recording of a console is followed over the files that a controller makes of it.
func TestRecording(t *testing.T) {
	w := newWatched(t)
	c := Console(w.run, "a", 1)
	next := func(want string) {
		t.Helper()
		if b, err := c.Next(); err != nil || string(b) != want {
			t.Errorf("%q (%v), want %q", b, err, want)
		}
	}
	next("")
	dir, err := w.run.NewBootDir("a", 1)
	if err != nil {
		t.Fatal(err)
	}
	next("")
	base, clock := filepath.Join(dir, "console"), time.Now()
	put := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		clock = clock.Add(time.Second)
		if err := os.Chtimes(name, clock, clock); err != nil {
			t.Fatal(err)
		}
	}
	put(base+".log", strings.Repeat("x", recordingBack)+"one\n")
	put(base+".timing", "0.1 4\n")
	next((strings.Repeat("x", recordingBack) + "one\n")[4:])
	put(base+".log", "two\n")
	next("two\n")
	next("")
	put(base+".tail.1", "three\n")
	put(base+".tail.1.timing", "0.1 4\n")
	next("three\n")
	put(base+".log", "three\n") // the tail is put behind it
	if err := os.Remove(base + ".tail.1"); err != nil {
		t.Fatal(err)
	}
	next("")
	put(base+"-2.log", "\x1b[31mfour\x1b[0m\x1b]0;evil\x07\r\n\r\n") // of a controller that resumed
	next("\x1b[31mfour\x1b[0m\x1b]0;evil\x07\r\n\r\n")
	if s, _ := c.LastLine(); s != "four·]0;evil·" {
		t.Errorf("last line %q", s)
	}
}
