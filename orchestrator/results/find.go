package results

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List names the runs in a directory, oldest first.
func List(runsDir string) ([]string, error) {
	entries, err := os.ReadDir(runsDir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if _, err := os.Stat(filepath.Join(runsDir, e.Name(), metaFile)); err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names) // names begin with the time
	return names, nil
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
		return nil, err
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
// or a part of a name's beginning that only one run has.
func Find(runsDir, what string) (*Run, error) {
	if what == "latest" {
		return Latest(runsDir)
	}
	if what == "" {
		return nil, fmt.Errorf("which run? Give a name, a path, or \"latest\"")
	}
	if strings.ContainsRune(what, filepath.Separator) {
		return Open(filepath.Clean(what))
	}
	names, err := List(runsDir)
	if err != nil {
		return nil, err
	}
	var hits []string
	for _, n := range names {
		if n == what {
			return Open(filepath.Join(runsDir, n))
		}
		if strings.HasPrefix(n, what) {
			hits = append(hits, n)
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
