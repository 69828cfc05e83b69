package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Change gives the run another plan summary and other metadata, and does then
// what goes with them. Where one of the three fails, as on a full disk, the run
// says what it said before. The run's lock is held.
func (r *Run) Change(plan PlanSummary, meta RunMeta, then func() error) error {
	was := r.Meta
	aside := func(name string) string { return filepath.Join(r.dir, "."+name+"0") } // a writer removes what a kill leaves
	for _, name := range []string{planFile, metaFile} {
		defer os.Remove(aside(name))
		if err := os.Link(filepath.Join(r.dir, name), aside(name)); err == nil {
			continue
		}
		b, err := readPlain(filepath.Join(r.dir, name)) // no links here
		if err == nil {
			err = replaceFile(aside(name), b)
		}
		if err != nil {
			return fmt.Errorf("run %s: %w%s", r.dir, err, advice(r.dir, err))
		}
	}
	err := r.WritePlan(plan, nil)
	if err == nil {
		err = r.SetMeta(meta)
	}
	if err == nil {
		err = then()
	}
	if err == nil {
		return nil
	}
	r.Meta = was
	for _, name := range []string{metaFile, planFile} { // a rename needs no room
		err = errors.Join(err, os.Rename(aside(name), filepath.Join(r.dir, name)))
	}
	return errors.Join(err, syncDir(r.dir))
}
