package results

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// oddName draws names that are long, hidden, empty, escaped already, or cut
// alike.
func oddName() *rapid.Generator[string] {
	long := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("a", rapid.IntRange(60, 300).Draw(t, "n")) + rapid.StringMatching(`[a-c%~./]{0,3}`).Draw(t, "end")
	})
	return rapid.OneOf(rapid.String(), long, rapid.StringMatching(`[.%~/A0-9a\-]{0,6}`),
		rapid.SampledFrom([]string{"", ".", "..", "-rf", "A", "a", "ä", "a\u0308", "%", "%25", "run.json", "journal.jsonl", "a b", "\x00", "\xff"}))
}

// Two names never share a path, and no path leaves the run directory or is too
// long for a file system.
func TestEveryNameHasItsOwnPath(t *testing.T) {
	run := &Run{dir: "/runs/r"}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n string) Slot {
			return Slot{Cell: Cell{oddName().Draw(t, n+"t"), "k", oddName().Draw(t, n+"w"), oddName().Draw(t, n+"s")},
				Boot: rapid.IntRange(1, 1200).Draw(t, n+"b"), Repeat: rapid.IntRange(-2, 120).Draw(t, n+"r")}
		}
		x, y := draw("x"), draw("y")
		px, py := run.TrialDir(x, 1), run.TrialDir(y, 1)
		if (x == y) != (px == py) {
			t.Fatalf("%+v and %+v lie in %s and %s", x, y, px, py)
		}
		rel, err := filepath.Rel(run.dir, px)
		if err != nil || !filepath.IsLocal(rel) || strings.Count(rel, "/") != 3 {
			t.Fatalf("%+v lies in %s", x, px)
		}
		for _, e := range strings.Split(rel, "/") {
			if len(e) > 255 || e[0] == '.' || e[0] == '-' || strings.ContainsFunc(e, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Fatalf("path element %q of %+v", e, x)
			}
		}
		if filepath.Dir(filepath.Dir(filepath.Dir(px))) == filepath.Join(run.dir, journalFile) {
			t.Fatal("a lane took the journal's name")
		}
	})
}

// A lane, a workload and a scenario of any name can be written and read again.
func TestOddNamesOnDisk(t *testing.T) {
	for _, name := range []string{"a b", "a/b", "größe", ".", "..", "x.y", strings.Repeat("n", 300), strings.Repeat("/", 300), "-", "\t\n"} {
		run, err := Create(t.TempDir(), name, RunMeta{}, t0)
		if err != nil {
			t.Fatalf("sweep %q: %v", name, err)
		}
		slot := Slot{Cell: Cell{name, name, name, name}, Block: 1, Boot: 1, Repeat: 1}
		w, err := run.OpenWriter(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.NewTrialDir(slot, 1); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		for _, k := range []Kind{KindStarted, KindEnded, KindJudged} {
			if _, err := w.Append(t.Context(), Record{Lane: name, Kind: k, Slot: &slot, Attempt: 1, Outcome: OK}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		found, err := Find(filepath.Dir(run.Dir()), run.Name())
		if err != nil {
			t.Fatal(err)
		}
		s, err := found.State()
		if err != nil || len(s.Journal.Notes) != 0 {
			t.Fatalf("%q: %v %q", name, err, s.Journal.Notes)
		}
		if n := s.Model.CountLane(name)[OK]; n != 1 || found.NextAttempt(slot, s.Model) != 2 || found.NextBoot(name, s.Model) != 2 {
			t.Errorf("%q: %d ok, next attempt %d, next boot %d", name, n, found.NextAttempt(slot, s.Model), found.NextBoot(name, s.Model))
		}
	}
}
