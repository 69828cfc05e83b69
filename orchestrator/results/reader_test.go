package results

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/workloads"
)

// line renders a record of lane r1 as the journal has it.
func line(t testing.TB, seq, laneSeq int, note string) string {
	t.Helper()
	lane := "r1"
	if laneSeq == 0 {
		lane = ""
	}
	b, err := EncodeLine(Record{Seq: seq, Lane: lane, LaneSeq: laneSeq, At: t0.Add(time.Duration(seq) * time.Second), Kind: KindNote, Note: note})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadJournalTolerates(t *testing.T) {
	l := func(seq int) string { return line(t, seq, seq, "n") }
	good := l(1) + l(2) + l(3) + l(4)
	for _, c := range []struct {
		name, file     string
		good, doubtful int
		note           string
	}{
		{"clean", good, 4, 0, ""},
		{"empty", "", 0, 0, "nothing recorded"},
		{"torn", good + l(5)[:40], 4, 0, "torn tail of 40 bytes dropped"},
		{"whole last line without its end", strings.TrimSuffix(good, "\n"), 4, 0, ""},
		{"NUL tail", good + strings.Repeat("\x00", 512), 4, 0, "512 NUL bytes ignored"},
		{"NUL, then more", good + strings.Repeat("\x00", 512) + l(5), 5, 0, "512 NUL bytes ignored"},
		{"only NUL", strings.Repeat("\x00", 4096), 0, 0, "nothing recorded"},
		{"gap", good + l(7), 4, 1, "records 5 to 6 are missing"},
		{"gap, loudly", good + l(7), 4, 1, "lane r1: record 7 does not follow its record 4"},
		{"gap of another lane", l(1) + line(t, 3, 2, "n"), 2, 0, "record 2 is missing"},
		{"twice", good + l(4), 4, 0, "record 4 is there twice"},
		{"one number, two records", good + line(t, 4, 4, "other"), 4, 1, "two different records claim number 4"},
		{"out of order", l(2) + l(1) + l(4) + l(3), 4, 0, "out of order"},
		{"foreign line", l(1) + "hello\n" + l(2), 2, 0, "line 2: ignored: not a journal line"},
		{"empty line", l(1) + "\n" + l(2), 2, 0, "line 2: ignored"},
		{"flipped bit", l(1) + strings.Replace(l(2), "note", "nota", 1) + l(3), 1, 1, "line 2: ignored: checksum does not match"},
		{"JSON without a sum", l(1) + `{"seq":2,"lane":"r1","lane_seq":2,"kind":"note"}` + "\n", 1, 0, "line 2: ignored"},
		{"endless line", l(1) + strings.Repeat("x", maxLine+10) + "\n" + l(2), 2, 0, "are no journal line"},
		{"CRLF", strings.ReplaceAll(good, "\n", "\r\n"), 0, 0, "ignored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, err := ReadJournal(strings.NewReader(c.file))
			if err != nil {
				t.Fatal(err)
			}
			if len(j.Records) != c.good || len(j.Doubtful) != c.doubtful {
				t.Errorf("%d records, %d doubtful, want %d and %d", len(j.Records), len(j.Doubtful), c.good, c.doubtful)
			}
			if all := strings.Join(j.Notes, "\n"); c.note == "" && all != "" || !strings.Contains(all, c.note) {
				t.Errorf("notes %q, want %q", all, c.note)
			}
		})
	}
}

// Cut anywhere, the journal reads up to the last whole record, and a writer
// goes on from there.
func TestJournalCutAtEveryByte(t *testing.T) {
	file := line(t, 1, 1, "a") + line(t, 2, 0, "b") + line(t, 3, 2, "c")
	for cut := range len(file) + 1 {
		j, err := ReadJournal(strings.NewReader(file[:cut]))
		if err != nil {
			t.Fatal(err)
		}
		// A record counts from its last digit on, with or without its line end.
		want := strings.Count(file[:cut]+"\n", "\n") - 1
		if cut < len(file) && file[cut] == '\n' {
			want++
		}
		if len(j.Records) != want || len(j.Doubtful) != 0 {
			t.Fatalf("cut at %d: %d records, want %d", cut, len(j.Records), want)
		}
	}
}

func TestWriterRepairsAndKeepsWhatItFound(t *testing.T) {
	l := func(seq int) string { return line(t, seq, seq, "n") }
	good := l(1) + l(2)
	for name, c := range map[string]struct {
		found   string
		nextSeq int
	}{
		"torn":    {good + l(3)[:50], 3},
		"no end":  {strings.TrimSuffix(good, "\n"), 3},
		"NUL":     {good + strings.Repeat("\x00", 512), 3},
		"gap":     {good + l(5), 6},
		"foreign": {l(1) + "hello\n" + l(2), 3},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			path := filepath.Join(run.Dir(), journalFile)
			if err := os.WriteFile(path, []byte(c.found), 0o644); err != nil {
				t.Fatal(err)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			r, err := w.Append(t.Context(), Record{Lane: "r1", Kind: KindNote, Note: "on"})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if r.LaneSeq != 3 || r.Seq != c.nextSeq+1 {
				t.Errorf("went on with %d, lane %d", r.Seq, r.LaneSeq)
			}
			aside, err := os.ReadFile(filepath.Join(run.Dir(), "journal.damaged-001.jsonl"))
			if err != nil || string(aside) != c.found {
				t.Errorf("the file as found was not kept: %v", err)
			}
			j := journal(t, run)
			if len(j.Records) != 4 || len(j.Doubtful) != 0 || !strings.Contains(j.Records[2].Note, "journal repaired (as found: journal.damaged-001.jsonl)") {
				t.Errorf("after the repair: %+v, notes %q", j.Records, j.Notes)
			}
			if again, err := run.OpenWriter("kim"); err != nil {
				t.Error(err)
			} else if err := again.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(run.Dir(), "journal.damaged-002.jsonl")); err == nil {
				t.Error("a repaired journal was repaired again")
			}
		})
	}
}

func FuzzReadJournal(f *testing.F) {
	f.Add([]byte(line(f, 1, 1, "a") + line(f, 2, 0, "b") + line(f, 3, 2, "c")))
	f.Add([]byte(line(f, 1, 1, "a") + line(f, 7, 7, "b")))
	f.Add([]byte("\x00\x00{}\t00000000\n"))
	f.Fuzz(func(t *testing.T, file []byte) { believedAgain(t, file) })
}

// believedAgain reads a file, derives all that reports use, and demands that
// what was believed is a journal without fault itself.
func believedAgain(t *testing.T, file []byte) {
	t.Helper()
	j, err := readJournal(bytes.NewReader(file), reading{keep: true})
	if err != nil {
		t.Fatal(err)
	}
	lane, last := map[string]int{}, 0
	for _, r := range j.Records {
		if r.Lane != "" && r.LaneSeq != lane[r.Lane]+1 || r.Seq <= last {
			t.Fatalf("lane %q: %d believed after %d, record %d after %d", r.Lane, r.LaneSeq, lane[r.Lane], r.Seq, last)
		}
		lane[r.Lane], last = r.LaneSeq, r.Seq
	}
	m := Load(j.Records)
	m.ExitStatus()
	for _, trial := range m.Trials {
		trial.Settled()
		for _, a := range trial.Attempts {
			if d, ok := a.Took(); ok && d < 0 {
				t.Fatalf("an attempt took %s", d)
			}
		}
		m.ByBoot(trial.Slot.Cell)
	}
	if len(j.lines) == 0 {
		return
	}
	again, err := readJournal(bytes.NewReader(append(bytes.Join(j.lines, []byte("\n")), '\n')), reading{keep: true})
	if err != nil || len(again.Records) != len(j.Records) || !again.clean || again.torn != "" {
		t.Fatalf("what was believed reads as %d records, want %d, notes %q (%v)", len(again.Records), len(j.Records), again.Notes, err)
	}
}

// FuzzJournalLines makes journals of intact lines: every byte is one line, with
// a number, a lane, a kind and a run of its own, so that the checksums hold.
func FuzzJournalLines(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte{9, 9, 200, 3, 3, 77, 255})
	kinds := []Kind{KindRun, KindPhase, KindBoot, KindStarted, KindEnded, KindJudged, KindNote, KindLane, KindTask, KindKnob, KindCut, "later"}
	f.Fuzz(func(t *testing.T, in []byte) {
		var file []byte
		for i, c := range in {
			r := Record{Seq: i + 1 - int(c>>6), Kind: kinds[int(c)%len(kinds)], Attempt: int(c & 3), Outcome: OK, UpMS: int64(c) * 1000, At: t0.Add(-time.Duration(c) * time.Hour)}
			if c&4 != 0 {
				r.Lane, r.LaneSeq = "r"+string('0'+rune(c&1)), i+1-int(c>>7)
			}
			if c&8 != 0 {
				r.Slot, r.Boot = slotOf(int(c>>5), int(c&3), int(c&1)), &Boot{Number: int(c & 3), Outcome: Outcome(kinds[c&7])}
			}
			if c&16 != 0 {
				r.Run = "aabb"
			}
			l, err := EncodeLine(r)
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, l...)
		}
		believedAgain(t, file)
	})
}

func BenchmarkReadJournal100k(b *testing.B) {
	var file bytes.Buffer
	slot := Slot{Cell: Cell{"wl500gpv2", "bfs", "iperf.to_target", "default"}, Block: 1, Boot: 1, Repeat: 1}
	parsed := &workloads.Parsed{}
	for i := range 4 {
		parsed.Values = append(parsed.Values, workloads.Value{Metric: workloads.Metric{Name: fmt.Sprintf("m%d", i), Unit: "s", Better: workloads.LowerIsBetter}, Value: 31.9 + float64(i)})
	}
	const n = 100_000
	for i := 1; i <= n; i++ {
		r := Record{Seq: i, Lane: "wl500gpv2", LaneSeq: i, At: t0, Slot: &slot, Attempt: i, Kind: KindStarted}
		if i%3 == 0 {
			r.Kind, r.Outcome, r.Parsed = KindJudged, OK, parsed
		}
		l, err := EncodeLine(r)
		if err != nil {
			b.Fatal(err)
		}
		file.Write(l)
	}
	b.SetBytes(int64(file.Len()))
	for b.Loop() {
		j, err := ReadJournal(bytes.NewReader(file.Bytes()))
		if err != nil || len(j.Records) != n {
			b.Fatal(err, j.Notes)
		}
	}
}
