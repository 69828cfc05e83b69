package results

import (
	"strings"
	"testing"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// script makes records from short forms, numbered and a second apart.
type script struct{ recs []Record }

func (s *script) add(r Record) *script {
	r.Seq = len(s.recs) + 1
	r.At = t0.Add(time.Duration(r.Seq) * time.Second)
	s.recs = append(s.recs, r)
	return s
}

func (s *script) boot(n, block int, o Outcome) *script {
	return s.add(Record{Lane: "r1", Kind: KindBoot, Boot: &Boot{Number: n, Kernel: "bfs", Block: block, Outcome: o}})
}

func slotOf(block, boot, repeat int) *Slot {
	return &Slot{Cell: Cell{"r1", "bfs", "iperf.a", "default"}, Block: block, Boot: boot, Repeat: repeat}
}

// trial adds started, ended and judged; an empty outcome leaves the record out.
func (s *script) trial(slot *Slot, attempt int, ended, judged Outcome, value float64) *script {
	s.add(Record{Lane: "r1", Kind: KindStarted, Slot: slot, Attempt: attempt})
	if ended != "" {
		s.add(Record{Lane: "r1", Kind: KindEnded, Slot: slot, Attempt: attempt, Outcome: ended, Reason: why(ended, "ended")})
	}
	if judged != "" {
		p := &workloads.Parsed{Values: []workloads.Value{{Metric: workloads.Metric{Name: "rate"}, Value: value}}}
		s.add(Record{Lane: "r1", Kind: KindJudged, Slot: slot, Attempt: attempt, Outcome: judged, Reason: why(judged, "judged"), Parsed: p})
	}
	return s
}

func why(o Outcome, when string) string {
	if o == OK {
		return ""
	}
	return string(o) + " as " + when
}

func TestOutcomeOfAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name          string
		ended, judged Outcome
		want          Outcome
		reason        string
		collect       string
	}{
		{"ok", OK, OK, OK, "", ""},
		{"never ended", "", "", Interrupted, "started, but no end is recorded", ""},
		{"ended, never judged", OK, "", Interrupted, "its evidence was not read", ""},
		{"timed out, never judged", Failed, "", Failed, "failed as ended", ""},
		{"collection lost after a time-out", Failed, Lost, Failed, "failed as ended", "lost as judged"},
		{"link lost, spool saved", Lost, OK, OK, "", ""},
		{"bad evidence", OK, Invalid, Invalid, "invalid as judged", ""},
		{"n/a", "", NotApplicable, NotApplicable, "n/a as judged", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{}
			m := Load(s.trial(slotOf(1, 1, 1), 1, c.ended, c.judged, 1).recs)
			a := m.Trials[0].Final()
			if a.Outcome != c.want || !strings.Contains(a.Reason, c.reason) || a.Collect != c.collect {
				t.Errorf("%s %q collect %q", a.Outcome, a.Reason, a.Collect)
			}
		})
	}
}

// The newest valid attempt counts, in whatever boot it ran; a failed later one
// takes nothing away; the first failure is remembered; warm-ups are left out.
func TestNewestValidAttemptCounts(t *testing.T) {
	s := &script{}
	s.boot(1, 1, OK)
	s.trial(slotOf(1, 1, 0), 1, OK, OK, 99)
	s.trial(slotOf(1, 1, 1), 1, OK, OK, 10)
	s.trial(slotOf(1, 1, 2), 1, Failed, Failed, 0)
	s.boot(2, 2, OK)
	s.trial(slotOf(2, 2, 1), 1, OK, OK, 20)
	s.boot(3, 1, OK)
	s.trial(slotOf(1, 3, 2), 2, OK, OK, 12)
	s.trial(slotOf(1, 3, 1), 2, OK, OK, 11)
	s.trial(slotOf(2, 3, 1), 2, Failed, Failed, 0)
	m := Load(s.recs)
	got := ""
	for _, b := range m.ByBoot(slotOf(1, 1, 1).Cell) {
		got += "boot " + string(rune('0'+b.Boot)) + ":"
		for _, a := range b.Trials {
			got += " " + string(rune('0'+a.Slot.Repeat)) + "=" + string(rune('A'+int(a.Parsed.Values[0].Value)))
		}
		got += "; "
	}
	if want := "boot 2: 1=U; boot 3: 1=L 2=M; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := m.Count(); n[OK] != 3 || len(n) != 1 || m.ExitStatus() != ExitOK {
		t.Errorf("%v, exit %d", n, m.ExitStatus())
	}
	if f := m.Slot(*slotOf(1, 9, 2)).FirstFailure; f != "failed as judged" {
		t.Errorf("first failure %q", f)
	}
	if len(m.Slot(*slotOf(1, 1, 2)).Attempts) != 2 {
		t.Error("an attempt got lost")
	}
}

// A slot without a block takes that of its boot, however late that was judged.
func TestSlotWithoutBlock(t *testing.T) {
	s := &script{}
	s.boot(4, 2, OK).trial(slotOf(0, 4, 1), 1, OK, OK, 1)
	if m := Load(s.recs); m.Slot(*slotOf(2, 4, 1)) == nil {
		t.Error("the slot is not found by its block")
	}
}

func TestExitStatus(t *testing.T) {
	lane := func(note, reason string) Record {
		return Record{Lane: "r1", Kind: KindLane, Note: note, Reason: reason}
	}
	ok := func(s *script) { s.trial(slotOf(1, 1, 1), 1, OK, OK, 1) }
	for _, c := range []struct {
		name string
		make func(*script)
		want int
	}{
		{"nothing", func(*script) {}, 0},
		{"ok", ok, 0},
		{"n/a and skipped", func(s *script) {
			s.trial(slotOf(1, 1, 1), 0, "", Skipped, 0).trial(slotOf(1, 1, 2), 0, "", NotApplicable, 0)
		}, 0},
		{"invalid", func(s *script) { ok(s); s.trial(slotOf(1, 1, 2), 1, OK, Invalid, 0) }, 1},
		{"kernel did not boot", func(s *script) { ok(s); s.boot(2, 2, BootFailed) }, 1},
		{"boot retried", func(s *script) { s.boot(1, 1, Lost).boot(2, 1, OK); ok(s) }, 0},
		{"lost beats failed", func(s *script) {
			s.trial(slotOf(1, 1, 1), 1, Failed, Failed, 0).trial(slotOf(1, 1, 2), 1, Lost, Lost, 0)
		}, 3},
		{"quarantined", func(s *script) { ok(s); s.add(lane(NoteQuarantined, "no power")) }, 3},
		{"quarantined, then rerun", func(s *script) {
			s.add(lane(NoteBegan, "")).add(lane(NoteQuarantined, "no power")).add(lane(NoteEnded, "")).add(lane(NoteBegan, ""))
			ok(s)
		}, 0},
		{"interrupted beats all", func(s *script) {
			s.trial(slotOf(1, 1, 1), 1, Lost, Lost, 0).add(Record{Kind: KindRun, Note: NoteBegan}).add(Record{Kind: KindRun, Note: NoteInterrupted})
		}, 130},
		{"interrupted, then resumed", func(s *script) {
			s.add(Record{Kind: KindRun, Note: NoteBegan}).add(Record{Kind: KindRun, Note: NoteInterrupted})
			s.add(Record{Kind: KindRun, Note: NoteBegan})
			ok(s)
			s.add(Record{Kind: KindRun, Note: NoteEnded})
		}, 0},
		{"warm-up failed", func(s *script) { s.trial(slotOf(1, 1, 0), 1, Failed, Failed, 0) }, 0},
	} {
		s := &script{}
		c.make(s)
		if got := Load(s.recs).ExitStatus(); got != c.want {
			t.Errorf("%s: exit %d, want %d", c.name, got, c.want)
		}
	}
}

func TestLanesBootsAndSessions(t *testing.T) {
	s := &script{}
	s.add(Record{Kind: KindRun, Note: NoteBegan + ": kim"})
	s.add(Record{Lane: "r1", Kind: KindPhase, Phase: targets.PhaseAsked, Boot: &Boot{Number: 1, Kernel: "bfs"}})
	s.add(Record{Lane: "r1", Kind: KindPhase, Phase: targets.PhaseDown, Boot: &Boot{Number: 1, Kernel: "bfs"}})
	s.add(Record{Lane: "r1", Kind: KindLane, Note: NoteQuarantined, Reason: "first cause"})
	s.add(Record{Lane: "r1", Kind: KindLane, Note: NoteQuarantined, Reason: "later"})
	s.add(Record{Lane: "r1", Kind: KindPhase}) // of no boot: ignored
	s.add(Record{Lane: "r1", Kind: KindJudged})
	m := Load(s.recs)
	if len(m.Lanes) != 1 || m.Lanes[0].Reason != "first cause" || len(m.Sessions) != 1 || !m.Sessions[0].Ended.IsZero() {
		t.Errorf("%+v %+v", m.Lanes, m.Sessions)
	}
	if len(m.Boots) != 1 || m.Boots[0].Phase != targets.PhaseDown || m.Boots[0].Result != nil {
		t.Errorf("%+v", m.Boots)
	}
}
