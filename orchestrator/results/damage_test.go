package results

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// night is the journal of a lane whose trial a is done and whose trial b is
// under way: four records, and three that would follow.
func night(t *testing.T, run string) []string {
	t.Helper()
	a, b := *slotOf(1, 1, 1), *slotOf(1, 1, 2)
	var lines []string
	for i, r := range []Record{{Kind: KindStarted, Slot: &a}, {Kind: KindEnded, Slot: &a, Outcome: OK}, {Kind: KindJudged, Slot: &a, Outcome: OK},
		{Kind: KindStarted, Slot: &b}, {Kind: KindEnded, Slot: &b, Outcome: OK}, {Kind: KindNote, Note: "n"}, {Kind: KindJudged, Slot: &b, Outcome: OK}} {
		r.Seq, r.LaneSeq, r.Lane, r.Run, r.Attempt, r.At = i+1, i+1, "r1", run, 1, t0.Add(time.Duration(i)*time.Second)
		if r.Kind == KindNote {
			r.Attempt = 0
		}
		l, err := EncodeLine(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(l))
	}
	return lines
}

// What a power cut, a full disk or a wrong copy makes of a journal: how far it
// is believed, that it is said, and what is measured again.
func TestDamagedJournals(t *testing.T) {
	for _, c := range []struct {
		name          string
		file          func(l []string) string
		last          int // number of the last record that is believed
		aDone, bAgain bool
		note          string
	}{
		{"torn", func(l []string) string { return strings.Join(l[:4], "") + l[4][:len(l[4])/2] }, 4, true, true, "torn tail of"},
		{"NUL", func(l []string) string { return strings.Join(l[:4], "") + strings.Repeat("\x00", 512) }, 4, true, true, "512 NUL bytes ignored"},
		{"empty", func([]string) string { return "" }, 0, false, false, "nothing recorded"},
		{"gap", func(l []string) string { return strings.Join(l[:4], "") + l[6] }, 4, true, true, "records 5 to 6 are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRun(t)
			if _, err := run.NewTrialDir(*slotOf(1, 1, 1), 1); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(run.Dir(), journalFile), []byte(c.file(night(t, run.Meta.ID))), 0o644); err != nil {
				t.Fatal(err)
			}
			check := func(when string) *Journal {
				j := journal(t, run)
				m := Load(j.Records)
				a, b := m.Slot(*slotOf(1, 1, 1)), m.Slot(*slotOf(1, 1, 2))
				if (a != nil && a.Settled() && a.Outcome() == OK) != c.aDone || (b != nil && !b.Settled()) != c.bAgain {
					t.Errorf("%s: a %+v, b %+v", when, a, b)
				}
				return j
			}
			j := check("as found")
			if n := len(j.Records); n != c.last || n > 0 && j.Records[n-1].Seq != c.last {
				t.Errorf("%d records are believed", n)
			}
			if !strings.Contains(strings.Join(j.Notes, "\n"), c.note) {
				t.Errorf("notes %q", j.Notes)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			j = check("after a writer")
			if len(j.Records) == 0 || !strings.Contains(j.Records[len(j.Records)-1].Note, "journal ") {
				t.Errorf("the writer left no note of it: %+v", j.Records)
			}
			if c.name == "empty" && !strings.Contains(j.Records[0].Note, "holds no record, but this run has files of 1 boots: what it recorded is LOST") {
				t.Errorf("%+v", j.Records[0])
			}
		})
	}
}

// A record of another run is known as such whatever its number and checksum say.
func TestForeignRecords(t *testing.T) {
	own := func(run *Run) []string { return night(t, run.Meta.ID)[:4] }
	for _, c := range []struct {
		name string
		line func() string
		note string
	}{
		{"of another run", func() string { return night(t, "aabbccddeeff")[4] }, "line 5: record 5 is of another run (aabbccddeeff): it is NOT believed"},
		{"of a run of format 1", func() string { return night(t, "")[4] }, "line 5: record 5 names no run: it is NOT believed"},
		{"of another run, with a number that was used", func() string { return night(t, "aabbccddeeff")[2] }, "record 3 is of another run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := newRun(t)
			path := filepath.Join(run.Dir(), journalFile)
			if err := os.WriteFile(path, []byte(strings.Join(own(run), "")+c.line()), 0o644); err != nil {
				t.Fatal(err)
			}
			j := journal(t, run)
			if len(j.Records) != 4 || len(j.Doubtful) != 0 || len(j.Notes) != 1 || !strings.Contains(j.Notes[0], c.note) {
				t.Fatalf("%d records, notes %q", len(j.Records), j.Notes)
			}
			w, err := run.OpenWriter("kim")
			if err != nil {
				t.Fatal(err)
			}
			r, err := w.Append(t.Context(), Record{Lane: "r1", Kind: KindNote})
			if err != nil || r.Seq != 6 || r.LaneSeq != 5 || r.Run != run.Meta.ID {
				t.Errorf("went on with %+v (%v)", r, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if j = journal(t, run); len(j.Notes) != 0 || len(j.Records) != 6 {
				t.Errorf("after the repair: %d records, %q", len(j.Records), j.Notes)
			}
		})
	}
}

// A run of format 1 is read and gone on with in its own format; another run's
// record is foreign there too.
func TestFormat1(t *testing.T) {
	run := newRun(t)
	meta := run.Meta
	meta.Format, meta.ID = 1, ""
	b, err := json.Marshal(meta)
	if err != nil {
		t.Fatal(err)
	}
	file := strings.Join(night(t, "")[:4], "") + night(t, "aabbccddeeff")[4]
	if err := os.WriteFile(filepath.Join(run.Dir(), metaFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), journalFile), []byte(file), 0o644); err != nil {
		t.Fatal(err)
	}
	if run, err = Open(run.Dir()); err != nil {
		t.Fatal(err)
	}
	if j := journal(t, run); len(j.Records) != 4 || len(j.Notes) != 1 || !strings.Contains(j.Notes[0], "is of another run") {
		t.Fatalf("%d records, %q", len(j.Records), j.Notes)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Append(t.Context(), Record{Lane: "r1", Kind: KindNote}); err != nil || r.Run != "" || r.LaneSeq != 5 {
		t.Errorf("%+v %v", r, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Kinds of a later version are kept by readers and writers.
func TestUnknownKind(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Append(t.Context(), Record{Lane: "r1", Kind: "oracle", Note: "42"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		j := journal(t, run)
		if len(j.Notes) != 1 || !strings.Contains(j.Notes[0], `1 records of kind "oracle" are of a newer kernsweep: kept`) || j.Records[0].Note != "42" {
			t.Fatalf("%q %+v", j.Notes, j.Records)
		}
		Load(j.Records)
		if w, err = run.OpenWriter("kim"); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(run.Dir(), "journal.damaged-001.jsonl")); err == nil {
		t.Error("a newer record was taken for damage")
	}
}

// Every kind that types.go declares is known to the reader.
func TestKindsAreKnown(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		if v, ok := node.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Kind") {
			n++
			if k := strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`); !Kind(k).known() {
				t.Errorf("%s is not known", v.Names[0].Name)
			}
		}
		return true
	})
	if n < 11 {
		t.Errorf("%d kinds were found", n)
	}
}

// Records of what the plan does not have are kept, noted, and not counted.
func TestRecordsOutsideThePlan(t *testing.T) {
	run := newRun(t)
	own := Cell{"r1", "bfs", "iperf.a", "default"}
	plan := PlanSummary{Targets: []PlannedTarget{{Name: "r1"}}, Cells: []PlannedCell{{Cell: own, Boots: 1, Repeat: 1}}}
	if err := run.WritePlan(plan, nil); err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Record{
		{Lane: "r1", Slot: &Slot{Cell: own, Block: 1, Repeat: 1, Boot: 1}},
		{Lane: "r2", Slot: &Slot{Cell: Cell{"r2", "bfs", "iperf.a", "default"}, Block: 1, Repeat: 1, Boot: 1}},
		{Lane: "r1", Slot: &Slot{Cell: Cell{"r1", "cfs", "iperf.a", "default"}, Block: 1, Repeat: 1, Boot: 1}},
	} {
		r.Kind, r.Outcome, r.Attempt = KindJudged, OK, 1
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := run.State()
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(s.Journal.Notes, "\n")
	if s.Model.Count()[OK] != 1 || len(s.Journal.Doubtful) != 2 || len(s.Model.Lanes) != 1 ||
		!strings.Contains(notes, `1 records of lane "r2" are NOT counted`) || !strings.Contains(notes, `cell "r1/cfs/iperf.a.default"`) {
		t.Errorf("%v, notes %q", s.Model.Count(), s.Journal.Notes)
	}
}

// A verdict is recorded however long its text is, in a line that readers take.
func TestRecordsThatAreTooLong(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat("é", maxLine)
	slot := *slotOf(1, 1, 1)
	for _, r := range []Record{
		{Lane: "r1", Kind: KindJudged, Slot: &slot, Attempt: 1, Outcome: Failed, Reason: huge},
		{Lane: "r1", Kind: KindBoot, Boot: &Boot{Number: 1, Outcome: BootFailed, Reason: huge, LastLines: []string{huge}}},
		{Lane: "r1", Kind: KindNote, Note: strings.Repeat("x", maxLine-1000)},
	} {
		if _, err := w.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j := journal(t, run)
	if len(j.Notes) != 0 || len(j.Records) != 3 || j.Records[0].Outcome != Failed || !strings.Contains(j.Records[0].Reason, "bytes were cut)") ||
		j.Records[1].Boot.Outcome != BootFailed || len(j.Records[2].Note) != maxLine-1000 {
		t.Errorf("%d records, %q", len(j.Records), j.Notes)
	}
}

// A run.json or a journal that was replaced by another run's is no reason to put
// every result aside and to measure all of it again.
func TestJournalOfAnotherRun(t *testing.T) {
	run := newRun(t)
	path := filepath.Join(run.Dir(), journalFile)
	text := strings.Join(night(t, "aabbccddeeff"), "")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	_, state := run.State()
	w, err := run.OpenWriter("kim")
	if err == nil {
		w.Close()
	}
	for _, err := range []error{state, err} {
		if err == nil || !strings.Contains(err.Error(), "every record of journal.jsonl is of run aabbccddeeff") || !strings.Contains(err.Error(), run.Meta.ID) {
			t.Errorf("%v", err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("the journal was changed: %v", err)
	}
	if more, _ := filepath.Glob(filepath.Join(run.Dir(), "journal.damaged*")); len(more) > 0 {
		t.Error(more)
	}
}

// A plan of another run would drop what it lacks, and call the rest complete.
func TestPlanOfAnotherRun(t *testing.T) {
	plan := map[string]any{"text": "a <b> & \u2028", "n": []int{1, 2}}
	raw, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	run := newRun(t)
	run.Meta.PlanHash = hex.EncodeToString(sum[:])
	if err := run.WritePlan(PlanSummary{}, plan); err != nil {
		t.Fatal(err)
	}
	if _, err := run.ReadPlan(nil); err != nil {
		t.Error(err)
	}
	if err := run.WritePlan(PlanSummary{}, map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	_, state := run.State()
	_, read := run.ReadPlan(nil)
	for _, err := range []error{state, read} {
		if err == nil || !strings.Contains(err.Error(), "is not the plan that this run began with") {
			t.Errorf("%v", err)
		}
	}
}
