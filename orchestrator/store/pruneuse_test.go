package store

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// holdRun names the run that a child process of the test holds.
const holdRun = "KERNSWEEP_TEST_HOLD_RUN"

// TestHoldsARun is that child: it has the run open until its input ends.
func TestHoldsARun(t *testing.T) {
	dir := os.Getenv(holdRun)
	if dir == "" {
		return
	}
	run := must(results.Open(dir))
	w := must(run.OpenWriter("another"))
	must(w.Append(t.Context(), results.Record{Kind: results.KindNote, Note: "at work"}))
	fmt.Println("held")
	_ = bufio.NewScanner(os.Stdin).Scan()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run that another process writes stays, with what it refers to, whatever is asked
// for; once that process is gone, it goes like any other.
func TestPruneSparesARunOfAnotherProcess(t *testing.T) {
	a := newAttic(t, 3)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHoldsARun$")
	child.Env = append(os.Environ(), holdRun+"="+a.made[0].Dir())
	in := must(child.StdinPipe())
	out := must(child.StdoutPipe())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "held" {
	}
	later := a.now.Add(999 * 24 * time.Hour)
	for name, o := range map[string]Pruning{"age": {Keep: none, OlderThan: time.Hour, Now: later}, "number": {Keep: 0}, "size": {Keep: none, MaxSize: 1}} {
		got := a.prune(o)
		if want := "agent 0, agent 2, image 0, image 2, run 0, run 2, shared"; a.left() != want {
			t.Errorf("%s: left %s", name, a.left())
		}
		if !strings.Contains(strings.Join(got.Warnings, "\n"), a.made[0].Name()+" stays: it is in use by another") {
			t.Errorf("%s: %q", name, got.Warnings)
		}
	}
	in.Close()
	for lines.Scan() {
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	got := a.prune(Pruning{Keep: 0, Now: later})
	if want := "agent 2, image 2, run 2, shared"; a.left() != want || got.Runs != 1 {
		t.Errorf("once it is free: left %s, %+v", a.left(), got)
	}
}

// A run of which only a link lies here belongs to another folder: the link stays,
// and so does what it refers to.
func TestPruneSparesLinkedRuns(t *testing.T) {
	a := newAttic(t, 3)
	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(a.made[0].Dir(), away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, a.made[0].Dir()); err != nil {
		t.Fatal(err)
	}
	got := a.prune(Pruning{Keep: 0, OlderThan: time.Hour, Now: a.now.Add(999 * 24 * time.Hour)})
	if want := "agent 0, agent 2, image 0, image 2, run 0, run 2, shared"; a.left() != want {
		t.Errorf("left %s", a.left())
	}
	if !exists(filepath.Join(away, "run.json")) || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "a link to a folder elsewhere") {
		t.Errorf("%+v", got)
	}
}

// What no run refers to may be spared by age, number and size; what one refers to
// is never asked about.
func TestPruneSparesUnusedEntries(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		s    Sparing
		want string // of "old 0" (the oldest) to "old 3"
	}{
		"nothing":             {Sparing{}, ""},
		"the young":           {Sparing{OlderThan: 25 * day}, "old 2, old 3"},
		"the newest":          {Sparing{Keep: 1}, "old 3"},
		"a number and an age": {Sparing{Keep: 3, OlderThan: 15 * day}, "old 1, old 2, old 3"},
		"a size":              {Sparing{MaxSize: 2<<20 + 64<<10}, "old 2, old 3"},
		"a large size":        {Sparing{MaxSize: 1 << 40}, "old 0, old 1, old 2, old 3"},
		"an age or a size":    {Sparing{OlderThan: 25 * day, MaxSize: 2<<20 + 64<<10}, "old 2, old 3"},
		"a great number":      {Sparing{Keep: 99}, "old 0, old 1, old 2, old 3"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttic(t, 1)
			a.prune(Pruning{Keep: none}) // "nobody's"
			for i := range 4 {
				path := file(t, filepath.Join(t.TempDir(), fmt.Sprint("old ", i)), strings.Repeat(fmt.Sprint(i), 1<<20))
				e := must(a.store.Put(t.Context(), []string{path}))
				at := a.now.Add(-time.Duration(4-i) * 10 * day).Add(day)
				if err := os.Chtimes(filepath.Dir(a.store.Path(e[path].Hash, "x")), at, at); err != nil {
					t.Fatal(err)
				}
			}
			before := size(a.runs)
			dry := a.prune(Pruning{Keep: none, Store: c.s, DryRun: true})
			if size(a.runs) != before {
				t.Error("a dry run removes")
			}
			got := a.prune(Pruning{Keep: none, Store: c.s})
			want := strings.TrimPrefix(strings.Join([]string{c.want, "run 0", "shared"}, ", "), ", ")
			if left := strings.TrimPrefix(a.left(), "agent 0, image 0, "); left != want {
				t.Errorf("left %s, want %s", left, want)
			}
			if dry.Bytes != got.Bytes || len(dry.Removed) != len(got.Removed) || dry.Stay != got.Stay {
				t.Errorf("dry %+v, then %+v", dry, got)
			}
			if got.Bytes+got.Stay > before || got.Bytes+got.Stay < before-64<<10 {
				t.Errorf("%d bytes went and %d stay of %d", got.Bytes, got.Stay, before)
			}
		})
	}
}
