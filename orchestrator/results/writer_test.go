package results

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kernsweep/workloads"
)

var t0 = time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)

func newRun(t *testing.T) *Run {
	t.Helper()
	r, err := Create(t.TempDir(), "overnight", RunMeta{Who: "kim", Host: "lab", Version: "test", Seed: 7}, t0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func journal(t *testing.T, r *Run) *Journal {
	t.Helper()
	j, err := r.Journal()
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func TestAppendNumbersRecordsOfConcurrentLanes(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	const lanes, each = 5, 20
	for l := range lanes {
		wg.Go(func() {
			for range each {
				if _, err := w.Append(t.Context(), Record{Lane: "t" + strconv.Itoa(l), Kind: KindNote, Note: "tab\tand\nline"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if _, err := w.Append(t.Context(), Record{Kind: KindRun, Note: NoteEnded}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j := journal(t, run)
	if len(j.Notes) != 0 || len(j.Records) != lanes*each+1 || len(j.Doubtful) != 0 {
		t.Fatalf("%d records, %d doubtful, notes %q", len(j.Records), len(j.Doubtful), j.Notes)
	}
	last := map[string]int{}
	for i, r := range j.Records {
		if r.Seq != i+1 || r.At.IsZero() || (r.Lane != "" && r.LaneSeq != last[r.Lane]+1) {
			t.Fatalf("record %d: %+v", i, r)
		}
		last[r.Lane] = r.LaneSeq
	}
	if _, err := w.Append(t.Context(), Record{Kind: KindNote}); err == nil {
		t.Error("an append to a closed journal succeeded")
	}
}

// A value that is no number is missing, with its reason; the verdict survives.
func TestAppendKeepsAVerdictWithNaN(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	p := &workloads.Parsed{Values: []workloads.Value{{Value: math.NaN()}, {Value: 3, Resolution: math.Inf(1)}}}
	rec := Record{Lane: "r1", Kind: KindJudged, Slot: slotOf(1, 1, 1), Attempt: 1, Outcome: OK, Parsed: p, Summary: &Activity{Wait: math.NaN()}}
	if _, err := w.Append(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := journal(t, run).Records[0]
	v := got.Parsed.Values
	if v[0].Missing != "not a finite number (NaN)" || v[1].Value != 3 || v[1].Missing != "" || got.Summary.Missing[0] != "wa" {
		t.Errorf("%+v %+v", v, got.Summary)
	}
	if !math.IsNaN(p.Values[0].Value) {
		t.Error("the caller's values were changed")
	}
}

func TestAppendIgnoresCancelWhenFree(t *testing.T) {
	run := newRun(t)
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Append(ctx, Record{Kind: KindNote, Note: "how it ended"}); err != nil {
		t.Error(err)
	}
	<-w.turn // another append hangs
	if _, err := w.Append(ctx, Record{Kind: KindNote}); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting behind a hanging append: %v", err)
	}
	w.turn <- struct{}{}
}

// A write cut short is taken back, so that the record after it is readable.
func TestFullDiskLeavesNoHalfRecord(t *testing.T) {
	run := newRun(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "JOURNAL_CHILD=full", "JOURNAL_RUN="+run.Dir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	j := journal(t, run)
	if len(j.Notes) != 0 || fmt.Sprintln(len(j.Records)) != string(out) {
		t.Errorf("%d records, last acknowledged %s, notes %q", len(j.Records), out, j.Notes)
	}
}

// A controller that is killed while it writes a file leaves it in the run
// directory, and the next one removes it.
func TestHalfWrittenFilesGo(t *testing.T) {
	run := newRun(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	stays := []string{".notes1234", "report.txt5", ".report.txt"}
	for _, n := range append([]string{".plan.json4713136832753055216", ".session-002.json9", ".report.txt77"}, stays...) {
		if err := os.WriteFile(filepath.Join(run.Dir(), n), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	deep := filepath.Join(run.Dir(), "r1", "boot-001", "exec.a.01", "attempt-1", ".trial.json12")
	if err := os.MkdirAll(filepath.Dir(deep), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(deep, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := os.Lstat(deep); err == nil {
		t.Errorf("%s stays", deep)
	}
	var found []string
	entries, _ := os.ReadDir(run.Dir())
	for _, e := range entries {
		if strings.Contains(e.Name(), "report.txt") || strings.HasPrefix(e.Name(), ".plan") || strings.HasPrefix(e.Name(), ".s") || strings.HasPrefix(e.Name(), ".n") {
			found = append(found, e.Name())
		}
	}
	slices.Sort(stays)
	if !slices.Equal(found, stays) {
		t.Errorf("found %q, want %q", found, stays)
	}
	if err := os.Chmod(tmp, 0); err != nil { // nothing is written there, whoever may
		t.Fatal(err)
	}
	if err := os.Remove(tmp); err != nil {
		t.Fatal(err)
	}
	if err := run.WriteFile("report.txt", []byte("x")); err != nil {
		t.Error(err)
	}
}
