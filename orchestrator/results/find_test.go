package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFindOddInput(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "runs")
	var all []*Run
	for i := range 3 {
		r, err := Create(runs, "overnight", RunMeta{}, t0.Add(time.Duration(i)*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	first, last := all[0], all[2]
	if err := os.Symlink(first.Name(), filepath.Join(runs, "latest")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(runs, "20991231T000000Z-dangling-0000")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(last.Dir(), filepath.Join(t.TempDir(), "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(first.Dir())
	if got, err := Find(runs, Short(last.Name())); err != nil || got.Name() != last.Name() { // its four digits are its own
		t.Errorf("%q found %v, want %s (%v)", Short(last.Name()), got, last.Name(), err)
	}
	if _, err := Find(runs, "overnight"); err == nil || !strings.Contains(err.Error(), "could be any of 3 runs") {
		t.Errorf("a name of all of them: %v", err)
	}
	for what, want := range map[string]*Run{
		".": first, "./": first, "../" + last.Name() + "//": last, last.Dir() + "/.": last, "latest": last, filepath.Join(runs, "latest"): first,
	} {
		got, err := Find(runs, what)
		if err != nil || got.Name() != want.Name() {
			t.Errorf("%q found %v, want %s (%v)", what, got, want.Name(), err)
		}
	}
	for what, want := range map[string]string{
		"..":                     "is no run directory",
		"/":                      "is no run directory",
		"/dev/null/x":            "not a directory",
		"2026":                   "could be any of 3 runs",
		"a\x00b":                 "is no name of a run",
		"*":                      "begins with \"*\"",
		strings.Repeat("x", 300): "no run in",
		"naïve name":             "no run in",
	} {
		if _, err := Find(runs, what); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", what, err)
		}
	}
	names, err := List(runs)
	if err != nil || len(names) != 3 {
		t.Errorf("%q %v", names, err)
	}
}

// A run directory goes by the name it has, so that what is printed can be typed.
func TestRenamedRun(t *testing.T) {
	runs := t.TempDir()
	r, err := Create(runs, "overnight", RunMeta{}, t0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.Dir(), filepath.Join(runs, "the good one")); err != nil {
		t.Fatal(err)
	}
	got, err := Find(runs, "the good one")
	if err != nil || got.Name() != "the good one" || got.Meta.ID != r.Meta.ID {
		t.Errorf("%+v %v", got, err)
	}
	later, err := Create(runs, "quick", RunMeta{}, t0.Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Latest(runs); err != nil || l.Name() != later.Name() {
		t.Errorf("latest is %v, %v", l, err)
	}
}

func TestDamagedRunsAreListed(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(meta string) error
		want   string
	}{
		"empty":     {func(m string) error { return os.WriteFile(m, nil, 0o644) }, "it is empty"},
		"NUL":       {func(m string) error { return os.WriteFile(m, make([]byte, 300), 0o644) }, "it holds only NUL bytes"},
		"garbage":   {func(m string) error { return os.WriteFile(m, []byte("\x7fELF"), 0o644) }, "is damaged (invalid character"},
		"half":      {func(m string) error { return os.Truncate(m, 20) }, "is damaged (unexpected end"},
		"no format": {func(m string) error { return os.WriteFile(m, []byte("null"), 0o644) }, "it names no format"},
		"missing":   {os.Remove, "run.json is missing: put back a copy"},
		"directory": {func(m string) error { return errors.Join(os.Remove(m), os.Mkdir(m, 0o755)) }, "is no plain file (a directory)"},
	} {
		t.Run(name, func(t *testing.T) {
			run := newRun(t)
			if err := c.damage(filepath.Join(run.Dir(), metaFile)); err != nil {
				t.Fatal(err)
			}
			runs := filepath.Dir(run.Dir())
			if names, err := List(runs); err != nil || !slices.Equal(names, []string{run.Name()}) {
				t.Errorf("%q %v", names, err)
			}
			for _, what := range []string{"latest", run.Name(), run.Dir()} {
				if _, err := Find(runs, what); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), run.Name()) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestAThousandRuns(t *testing.T) {
	runs := t.TempDir()
	const n = 1000
	for i := range n {
		dir := filepath.Join(runs, t0.Add(time.Duration(i)*time.Minute).Format("20060102T150405Z")+fmt.Sprintf("-s-%04x", i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		meta := fmt.Sprintf(`{"format":%d,"id":"x","name":%q}`, FormatVersion, filepath.Base(dir))
		if err := os.WriteFile(filepath.Join(dir, metaFile), []byte(meta), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(runs, fmt.Sprintf("notes %d.txt", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	names, err := List(runs)
	if err != nil || len(names) != n {
		t.Fatal(len(names), err)
	}
	if _, err := Latest(runs); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("listing took %s", d)
	}
}
