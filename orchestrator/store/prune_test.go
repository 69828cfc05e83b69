package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kernsweep/orchestrator/results"
)

// attic is a folder of runs, one a day, the newest today. Run i refers to the
// entry of "image i" and, all of them, to that of "shared".
type attic struct {
	t     *testing.T
	runs  string
	store *Store
	now   time.Time
	made  []*results.Run
}

func newAttic(t *testing.T, n int) *attic {
	t.Helper()
	a := &attic{t: t, runs: filepath.Join(t.TempDir(), "runs"), now: time.Now()}
	a.store = must(Open(a.runs))
	shared := a.put("shared")
	for i := range n {
		at := a.now.Add(-time.Duration(n-1-i) * 24 * time.Hour)
		run := must(results.Create(a.runs, "s", results.RunMeta{
			Images: map[string]string{"/img": a.put(fmt.Sprint("image ", i)), "/all": shared},
			Agents: map[string]string{"shell": a.put(fmt.Sprint("agent ", i))},
		}, at))
		if err := os.Chtimes(filepath.Join(run.Dir(), "journal.jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
		a.made = append(a.made, run)
	}
	a.put("nobody's")
	return a
}

func (a *attic) put(text string) string {
	a.t.Helper()
	path := file(a.t, filepath.Join(filepath.Dir(a.runs), text), text)
	e := must(a.store.Put(a.t.Context(), []string{path}))
	return e[path].Hash
}

func (a *attic) prune(o Pruning) Pruned {
	a.t.Helper()
	if o.Now.IsZero() {
		o.Now = a.now
	}
	return must(Prune(a.t.Context(), a.runs, o))
}

// left says which runs and stored bytes are there.
func (a *attic) left() string {
	a.t.Helper()
	var out []string
	for i, r := range a.made {
		if exists(r.Dir()) {
			out = append(out, fmt.Sprint("run ", i))
		}
	}
	for _, f := range must(filepath.Glob(filepath.Join(a.store.dir, "*", "*"))) {
		out = append(out, filepath.Base(f))
	}
	for _, dir := range []string{a.runs, a.store.dir} {
		for _, d := range must(os.ReadDir(dir)) {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != lockName {
				out = append(out, d.Name())
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

const (
	none    = -1
	threeOf = "agent 0, agent 1, agent 2, image 0, image 1, image 2, "
	allRuns = "run 0, run 1, run 2, shared"
)

func TestPrune(t *testing.T) {
	const day = 24 * time.Hour
	for name, tt := range map[string]struct {
		o    Pruning
		want string
	}{
		"by default":              {Pruning{Keep: none}, threeOf + allRuns},
		"dry":                     {Pruning{Keep: 0, OlderThan: time.Hour, DryRun: true}, threeOf + "nobody's, " + allRuns},
		"older":                   {Pruning{Keep: none, OlderThan: 36 * time.Hour}, "agent 1, agent 2, image 1, image 2, run 1, run 2, shared"},
		"all are older":           {Pruning{Keep: none, OlderThan: time.Hour, Now: time.Now().Add(365 * day)}, "agent 2, image 2, run 2, shared"},
		"keep 0 keeps the latest": {Pruning{Keep: 0}, "agent 2, image 2, run 2, shared"},
		"keep 1":                  {Pruning{Keep: 1}, "agent 2, image 2, run 2, shared"},
		"keep 2":                  {Pruning{Keep: 2}, "agent 1, agent 2, image 1, image 2, run 1, run 2, shared"},
		"keep more than there is": {Pruning{Keep: 7}, threeOf + allRuns},
		"keep spares":             {Pruning{Keep: 2, OlderThan: time.Hour}, "agent 1, agent 2, image 1, image 2, run 1, run 2, shared"},
		"a small size":            {Pruning{Keep: none, MaxSize: 1}, "agent 2, image 2, run 2, shared"},
		"a large size":            {Pruning{Keep: none, MaxSize: 1 << 40}, threeOf + allRuns},
	} {
		a := newAttic(t, 3)
		before := size(a.runs)
		got := a.prune(tt.o)
		if left := a.left(); left != tt.want {
			t.Errorf("%s: left %s; want %s", name, left, tt.want)
		}
		if freed := before - size(a.runs); !tt.o.DryRun && got.Bytes != freed {
			t.Errorf("%s: says %d bytes, freed %d", name, got.Bytes, freed)
		}
		if tt.o.DryRun != got.DryRun || name == "a small size" != (len(got.Warnings) > 0) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A size that needs one run to go takes one.
func TestPruneBySizeStopsInTime(t *testing.T) {
	a := newAttic(t, 3)
	file(t, filepath.Join(a.made[0].Dir(), "console.log"), strings.Repeat("x", 1<<20))
	got := a.prune(Pruning{Keep: none, MaxSize: 1 << 20})
	if exists(a.made[0].Dir()) || !exists(a.made[1].Dir()) || len(got.Warnings) > 0 {
		t.Errorf("left %s, %q", a.left(), got.Warnings)
	}
}

func TestPruneSparesRunsInUse(t *testing.T) {
	a := newAttic(t, 3)
	w, err := a.made[0].OpenWriter("somebody")
	if err != nil {
		t.Fatal(err)
	}
	a.prune(Pruning{Keep: 1})
	if want := "agent 0, agent 2, image 0, image 2, run 0, run 2, shared"; a.left() != want {
		t.Errorf("left %s", a.left())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	a.prune(Pruning{Keep: 1})
	if want := "agent 2, image 2, run 2, shared"; a.left() != want {
		t.Errorf("once it is free: left %s", a.left())
	}
}

// What cannot be read may refer to anything.
func TestPruneWithUnreadableRuns(t *testing.T) {
	for name, text := range map[string]string{"newer": `{"format": 99, "kernsweep_version": "9"}`, "torn": `{"format": 1, "na`, "empty": ""} {
		a := newAttic(t, 3)
		file(t, filepath.Join(a.made[0].Dir(), "run.json"), text)
		got := a.prune(Pruning{Keep: 1})
		if want := threeOf + "nobody's, run 0, run 2, shared"; a.left() != want {
			t.Errorf("%s: left %s", name, a.left())
		}
		if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "it may refer to anything") || !strings.Contains(got.Warnings[0], a.made[0].Name()) {
			t.Errorf("%s: %q", name, got.Warnings)
		}
		got = a.prune(Pruning{Keep: none, MaxSize: 1})
		if !exists(a.made[2].Dir()) || len(got.Removed) > 0 {
			t.Errorf("%s: by size %+v", name, got)
		}
	}
	a := newAttic(t, 2)
	file(t, filepath.Join(a.made[0].Dir(), keptFile), "{")
	if a.prune(Pruning{Keep: none}); !strings.Contains(a.left(), "nobody's") {
		t.Errorf("a damaged record: left %s", a.left())
	}
	a = newAttic(t, 2)
	if err := os.Remove(filepath.Join(a.made[0].Dir(), "run.json")); err != nil {
		t.Fatal(err)
	}
	if a.prune(Pruning{Keep: none}); !strings.Contains(a.left(), "nobody's") {
		t.Errorf("a run without run.json: left %s", a.left())
	}
}

func TestPruneRemovesLeftovers(t *testing.T) {
	a := newAttic(t, 1)
	old := time.Now().Add(-48 * time.Hour)
	for path, age := range map[string]time.Time{
		filepath.Join(a.runs, ".new-old", "run.json"): old, filepath.Join(a.runs, ".new-young", "run.json"): a.now,
		filepath.Join(a.runs, ".gone-2026", "journal.jsonl"): a.now, filepath.Join(a.store.dir, ".new-1"): a.now,
		filepath.Join(a.store.dir, ".gone-abc", "k"): a.now, filepath.Join(a.runs, ".locks", "x"): old,
	} {
		file(t, path, "left behind")
		for _, p := range []string{path, filepath.Dir(path)} {
			if filepath.Dir(path) != a.store.dir || p == path {
				if err := os.Chtimes(p, age, age); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	got := a.prune(Pruning{Keep: none})
	if want := ".locks, agent 0, image 0, run 0, shared"; a.left() != want {
		t.Errorf("left %s", a.left())
	}
	if len(got.Removed) != 6 || len(got.Warnings) > 0 {
		t.Errorf("%+v", got)
	}
}

func TestPruneOfNothing(t *testing.T) {
	if _, err := Prune(t.Context(), filepath.Join(t.TempDir(), "none"), Pruning{Keep: none, Now: time.Now()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	file(t, filepath.Join(dir, "thesis", "chapter1"), "no run") // --runs . by mistake
	file(t, filepath.Join(dir, "store", "shop.txt"), "no entry")
	got, err := Prune(t.Context(), dir, Pruning{Keep: 0, OlderThan: time.Hour, Now: time.Now().Add(9999 * time.Hour)})
	if err != nil || len(got.Removed) > 0 || !exists(filepath.Join(dir, "thesis", "chapter1")) || !exists(filepath.Join(dir, "store", "shop.txt")) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Runs are made and others pruned side by side: no run lacks what it refers to.
func TestPruneWhileRunsAreMade(t *testing.T) {
	a := newAttic(t, 1)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := Prune(t.Context(), a.runs, Pruning{Keep: 5, Now: time.Now()}); err != nil {
				stopped <- err
				return
			}
		}
	}()
	src := file(t, filepath.Join(t.TempDir(), "k"), "")
	for i := range 20 {
		file(t, src, fmt.Sprint("build ", i/3)) // some refer to what another run just lost
		release := must(a.store.Hold(t.Context()))
		e := must(a.store.Put(t.Context(), []string{src}))
		run := must(results.Create(a.runs, "s", results.RunMeta{Images: map[string]string{src: e[src].Hash}}, time.Now()))
		release()
		w, err := run.OpenWriter("me")
		if err != nil {
			t.Fatal(err) // it was the newest
		}
		if err := a.store.Verify(t.Context(), e[src].Hash, "k"); err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}
