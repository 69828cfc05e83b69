package leases

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// List is every lease of the folder, in key order, with Key and State filled. It
// changes nothing, waits for nobody, and leaves out what cannot be read. A folder
// that is not there has none.
func List(dir string) ([]Record, error) {
	f := &Folder{dir: dir, times: usualTimes(), clock: realClock(), machine: thisMachine()}
	return f.list()
}

func (f *Folder) list() ([]Record, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), leaseExt) {
			continue
		}
		s, err := f.loadFile(filepath.Join(f.dir, e.Name()))
		if err != nil || s.Holder == nil {
			continue // given back just now, or nobody's
		}
		r := *s.Holder
		r.Key, r.State = s.Key, Held
		switch {
		case f.machine.sees(r) && gone(r.PID, r.Start):
			r.State = Gone
		case f.machine.near(r) && f.clock.boot() >= bootTime(r), !f.machine.near(r) && f.clock.now().After(r.Until):
			r.State = Stale
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Record) int { return compare(a.Key, b.Key) })
	return out, nil
}
