package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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

func sessionPlan(session int) string { return fmt.Sprintf("session-%03d.json", session) }
