package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// WhyResume is Session.Why of a session that went on with the one before it.
const WhyResume = "resume"

// WriteSessionPlan keeps the plan of a later session (from 2), a rerun, so that
// it can be resumed too: session-NNN.json.
func (r *Run) WriteSessionPlan(session int, plan any) error {
	if err := writeJSON(filepath.Join(r.dir, sessionPlan(session)), plan); err != nil {
		return fmt.Errorf("run %s: plan of session %d: %w", r.dir, session, err)
	}
	return nil
}

// Rerun finds the rerun that the newest sessions of the run are about: its
// number, its plan in plan. 0: the newest sessions are about the run's own plan.
func (r *Run) Rerun(m *Model, plan any) (session int, err error) {
	n := len(m.Sessions)
	for n > 1 && strings.HasPrefix(m.Sessions[n-1].Why, WhyResume) {
		n--
	}
	if n < 2 {
		return 0, nil
	}
	b, err := readPlain(filepath.Join(r.dir, sessionPlan(n)))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // made by a version that kept none
	}
	if err == nil {
		err = json.Unmarshal(b, plan)
	}
	if err != nil {
		return 0, fmt.Errorf("run %s: plan of session %d: %w", r.dir, n, err)
	}
	return n, nil
}

// SessionPlans are the plans of the later sessions, as they were written, in
// order: of those that did not just go on with the one before. notes says which
// cannot be read.
func (r *Run) SessionPlans(m *Model) (plans []json.RawMessage, notes []string) {
	for n := 2; n <= len(m.Sessions); n++ {
		if strings.HasPrefix(m.Sessions[n-1].Why, WhyResume) {
			continue // a file with its number is of a rerun that never began
		}
		b, err := readPlain(filepath.Join(r.dir, sessionPlan(n)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !json.Valid(b) {
			err = errors.New("it is damaged")
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %v: what session %d added to the plan is not known", sessionPlan(n), err, n))
			continue
		}
		plans = append(plans, b)
	}
	return plans, notes
}

// addBlocks puts into a plan's cells which blocks later sessions added to them.
func (r *Run) addBlocks(s *State) {
	plans, notes := r.SessionPlans(s.Model)
	s.Journal.Notes = append(s.Journal.Notes, notes...)
	cells := make(map[Cell]*PlannedCell, len(s.Plan.Cells))
	for i := range s.Plan.Cells {
		cells[s.Plan.Cells[i].Cell] = &s.Plan.Cells[i]
	}
	for _, raw := range plans {
		var p struct {
			Lanes []struct {
				Boots []struct {
					Trials []Slot `json:"trials"`
				} `json:"boots"`
			} `json:"lanes"`
		}
		if json.Unmarshal(raw, &p) != nil {
			continue // of another shape: it added nothing that is known
		}
		for _, l := range p.Lanes {
			for _, b := range l.Boots {
				for _, t := range b.Trials {
					if c := cells[t.Cell]; c != nil && !t.Warmup() && t.Block > c.Boots && !slices.Contains(c.Added, t.Block) {
						c.Added = append(c.Added, t.Block)
					}
				}
			}
		}
	}
}

func sessionPlan(session int) string { return fmt.Sprintf("session-%03d.json", session) }
