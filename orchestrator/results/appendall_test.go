package results

import (
	"math"
	"testing"

	"kernsweep/workloads"
)

// TestAppendAll: many records at once are numbered like single ones, and one that
// cannot be written takes none of the others along.
func TestAppendAll(t *testing.T) {
	run, err := Create(t.TempDir(), "s", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := run.OpenWriter("kim")
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.AppendAll(t.Context(), []Record{{Kind: KindNote, Note: "a"}, {Kind: KindNote, Lane: "l", Note: "b"}, {Kind: KindNote, Lane: "l", Note: "c"}})
	if err != nil || len(out) != 3 || out[2].LaneSeq != 2 || out[2].Seq != out[0].Seq+2 {
		t.Errorf("%+v, %v", out, err)
	}
	bad := Record{Kind: KindJudged, Parsed: &workloads.Parsed{Values: []workloads.Value{{Each: []float64{math.NaN()}}}}}
	if _, err := w.AppendAll(t.Context(), []Record{{Kind: KindNote, Note: "d"}, bad}); err == nil {
		t.Error("a series that JSON cannot hold was recorded")
	}
	if _, err := w.Append(t.Context(), Record{Kind: KindNote, Note: "e"}); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := run.Journal()
	if err != nil || len(j.Records) != 4 || len(j.Notes) > 0 || j.Records[3].Note != "e" {
		t.Errorf("%+v, %v", j, err)
	}
}
