package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Reading says of every journal, whole or damaged, what State says.
func TestReadingIsState(t *testing.T) {
	join := func(l ...string) string { return strings.Join(l, "") }
	for _, planned := range []bool{false, true} {
		for name, file := range map[string]func(l []string, other []string) string{
			"whole":           func(l, _ []string) string { return join(l...) },
			"empty":           func(_, _ []string) string { return "" },
			"torn":            func(l, _ []string) string { return join(l[:4]...) + l[4][:50] },
			"no line end":     func(l, _ []string) string { return strings.TrimSuffix(join(l...), "\n") },
			"NUL inside":      func(l, _ []string) string { return join(l[:2]...) + "\x00\x00" + join(l[2:]...) },
			"NUL tail":        func(l, _ []string) string { return join(l...) + "\x00\x00" },
			"gap":             func(l, _ []string) string { return join(l[0], l[2], l[3]) },
			"order":           func(l, _ []string) string { return join(l[0], l[2], l[1], l[3]) },
			"twice":           func(l, _ []string) string { return join(l[0], l[1], l[1], l[2]) },
			"foreign run":     func(l, o []string) string { return join(l[0], l[1], o[2], l[3]) },
			"foreign first":   func(l, o []string) string { return join(o[0], l[1], l[2], l[3]) },
			"all foreign":     func(_, o []string) string { return join(o...) },
			"flipped":         func(l, _ []string) string { return join(l[0], strings.Replace(l[1], "ended", "enbed", 1), l[2]) },
			"begins with two": func(l, _ []string) string { return join(l[1:]...) },
			"strange lane": func(l, _ []string) string {
				return join(l...) + lineOf(t, Record{Seq: 8, Lane: "r9", LaneSeq: 1, Kind: KindNote}, l)
			},
			"lane sequence": func(l, _ []string) string {
				return join(l...) + lineOf(t, Record{Seq: 8, Lane: "r1", LaneSeq: 2, Kind: KindNote}, l)
			},
			"newer kind": func(l, _ []string) string { return join(l...) + lineOf(t, Record{Seq: 8, Kind: "future"}, l) },
			"no run named": func(l, _ []string) string {
				return join(l...) + lineOf(t, Record{Seq: 8, Kind: KindNote, Run: "-"}, nil)
			},
			"names no run at all": func(_, _ []string) string { return join(night(t, "")...) },
		} {
			run := newRun(t)
			if planned {
				c := slotOf(1, 1, 1).Cell
				if err := run.WritePlan(PlanSummary{Sweep: "x", Targets: []PlannedTarget{{Name: "r1"}}, Cells: []PlannedCell{{Cell: c}}}, nil); err != nil {
					t.Fatal(err)
				}
			}
			text := file(night(t, run.Meta.ID), night(t, "ffffffffffff"))
			if err := os.WriteFile(filepath.Join(run.Dir(), journalFile), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			want, wantErr := run.State()
			got, err := run.Reading()
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Errorf("%s: %v, State: %v", name, err, wantErr)
				continue
			}
			if err != nil {
				continue
			}
			same := cmp.Options{cmp.AllowUnexported(Model{}, Session{}, LaneState{}, BootState{}, Attempt{}, moment{}, bootKey{}), cmpopts.EquateEmpty(),
				cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })}
			if diff := cmp.Diff(want.Model, got.Model, same); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if diff := cmp.Diff(want.Journal.Notes, got.Journal.Notes, cmpopts.EquateEmpty()); diff != "" || len(want.Journal.Doubtful) != len(got.Journal.Doubtful) {
				t.Errorf("%s: %s", name, diff)
			}
			whole := name == "whole" || name == "names no run at all" || name == "strange lane" && !planned
			if s := run.stream(want.Plan, planned); (s != nil) != whole {
				t.Errorf("%s (planned %v): streamed: %v", name, planned, s != nil)
			}
		}
	}
}

// lineOf renders a record of the run that a night's lines are of.
func lineOf(t *testing.T, r Record, night []string) string {
	t.Helper()
	switch {
	case r.Run == "-":
		r.Run = ""
	case len(night) > 0:
		_, rest, _ := strings.Cut(night[0], `"run":"`)
		r.Run, _, _ = strings.Cut(rest, `"`)
	}
	r.At = t0
	b, err := EncodeLine(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
