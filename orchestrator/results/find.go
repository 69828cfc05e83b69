package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// List names the runs in a directory, oldest first, damaged ones too: Open says
// what is wrong with those. Links to runs of the same directory are left out.
func List(runsDir string) ([]string, error) {
	entries, err := os.ReadDir(runsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	home, err := filepath.EvalSymlinks(runsDir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || !isRun(filepath.Join(runsDir, name)) {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 {
			if to, err := filepath.EvalSymlinks(filepath.Join(runsDir, name)); err != nil || filepath.Dir(to) == home {
				continue
			}
		}
		names = append(names, name)
	}
	// Names begin with the time; those that somebody changed come first.
	slices.SortFunc(names, func(a, b string) int {
		if x, y := stamped(a), stamped(b); x != y {
			if y {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// isRun tells a run directory, also one that lost its run.json.
func isRun(dir string) bool {
	for _, name := range []string{metaFile, journalFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		} else if errors.Is(err, fs.ErrPermission) {
			return true // listed, and Open says why it cannot be read
		}
	}
	return false
}

func stamped(name string) bool {
	at, _, ok := strings.Cut(name, "-")
	_, err := time.Parse("20060102T150405Z", at)
	return ok && err == nil
}

// Latest opens the newest run: the last by the time in its name.
func Latest(runsDir string) (*Run, error) {
	names, err := List(runsDir)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no runs in %s yet: `kernsweep run SWEEP` makes one", runsDir)
	}
	return newest(runsDir, names)
}

// newest decides between runs of the same second by their creation time.
func newest(runsDir string, names []string) (*Run, error) {
	best, err := Open(filepath.Join(runsDir, names[len(names)-1]))
	if err != nil {
		return nil, fmt.Errorf("the newest run cannot be opened (name another one): %w", err)
	}
	stamp, _, _ := strings.Cut(best.Name(), "-")
	for _, n := range names[:len(names)-1] {
		if !strings.HasPrefix(n, stamp+"-") {
			continue
		}
		if r, err := Open(filepath.Join(runsDir, n)); err == nil && r.Meta.Created.After(best.Meta.Created) {
			best = r
		}
	}
	return best, nil
}

// Find opens a run by what a person typed: "latest", a path, a name in runsDir,
// or a part of a name's beginning, with its time or without, that only one run has.
func Find(runsDir, what string) (*Run, error) {
	if what == "latest" {
		return Latest(runsDir)
	}
	if what == "" {
		return nil, fmt.Errorf("which run? Give a name, a path, or \"latest\"")
	}
	if strings.ContainsRune(what, 0) {
		return nil, fmt.Errorf("%q is no name of a run", what)
	}
	if strings.ContainsRune(what, filepath.Separator) {
		return Open(filepath.Clean(what))
	}
	if what == "." || what == ".." {
		return Open(what)
	}
	if dir := filepath.Join(runsDir, what); !strings.HasPrefix(what, ".") && isRun(dir) {
		return Open(dir)
	}
	names, err := List(runsDir)
	if err != nil {
		return nil, err
	}
	var hits []string
	for _, n := range names {
		if strings.HasPrefix(n, what) {
			hits = append(hits, n)
		}
	}
	if len(hits) == 0 {
		for _, n := range names {
			if strings.HasPrefix(Short(n), what) {
				hits = append(hits, n)
			}
		}
	}
	switch {
	case len(hits) == 1:
		return Open(filepath.Join(runsDir, hits[0]))
	case len(hits) > 1:
		return nil, fmt.Errorf("%q could be any of %d runs in %s:%s", what, len(hits), runsDir, listed(hits))
	case len(names) == 0:
		return nil, fmt.Errorf("no run %q: there are no runs in %s yet", what, runsDir)
	}
	if _, err := os.Stat(filepath.Join(what, metaFile)); err == nil {
		return Open(what)
	}
	return nil, fmt.Errorf("no run in %s begins with %q; there are:%s", runsDir, what, listed(names))
}

// Short is a run's name without its time, which Find takes too: "overnight-7f3a".
func Short(name string) string {
	if _, rest, ok := strings.Cut(name, "-"); ok && rest != "" && stamped(name) {
		return rest
	}
	return name
}

// listed prints the newest few names, one a line.
func listed(names []string) string {
	const most = 10
	s := ""
	for i := len(names) - 1; i >= max(0, len(names)-most); i-- {
		s += "\n  " + names[i]
	}
	if n := len(names) - most; n > 0 {
		s += fmt.Sprintf("\n  and %d older", n)
	}
	return s
}
