package results

import (
	"fmt"
	"slices"
)

// mismatch refuses a journal none of whose records is of the run in run.json: one
// of the two files is another run's, and a repair would put all results aside.
func (j *Journal) mismatch(id string) error {
	if j.alien == "" {
		return nil
	}
	return fmt.Errorf("%s is of run %s, but every record of %s is of run %s: one of the two was replaced; put back the right one; nothing was changed",
		metaFile, id, journalFile, j.alien)
}

// own leaves the records of other runs out. A journal whose records name no run
// at all is of format 1, or was made from other logs.
func (s *scanner) own(id string) {
	named := slices.IndexFunc(s.lines, func(l rawLine) bool { return l.rec.Run != "" })
	if named < 0 {
		return
	}
	if id == "" {
		id = s.mostNamed()
	}
	s.id = id
	if !slices.ContainsFunc(s.lines, func(l rawLine) bool { return l.rec.Run == id }) {
		s.alien = s.mostNamed()
	}
	s.lines = slices.DeleteFunc(s.lines, func(l rawLine) bool {
		if l.rec.Run == id {
			return false
		}
		whose := "names no run"
		if l.rec.Run != "" {
			whose = "is of another run (" + l.rec.Run + ")"
		}
		s.note("line %d: record %d %s: it is NOT believed", l.no, l.rec.Seq, whose)
		return true
	})
}

// mostNamed is the run that most records name, which may be none.
func (s *scanner) mostNamed() (run string) {
	n := map[string]int{}
	for _, l := range s.lines {
		n[l.rec.Run]++
		if n[l.rec.Run] > n[run] {
			run = l.rec.Run
		}
	}
	return run
}
