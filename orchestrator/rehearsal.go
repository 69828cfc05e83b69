package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"kernsweep/orchestrator/config"
	"kernsweep/orchestrator/plan"
	"kernsweep/targets"
)

// Rehearsal is what `kernsweep target doctor` found out about a target.
type Rehearsal struct {
	Target  string          `json:"target"`
	Address string          `json:"address"` // AddressOf the target as it was configured then
	When    time.Time       `json:"when"`    // of its end, by the controller's clock
	Version string          `json:"version"` // of kernsweep
	Steps   []RehearsalStep `json:"steps"`   // in order; the panic and the hang are among them where they were allowed
}

// RehearsalStep is one thing that was tried.
type RehearsalStep struct {
	Name string        `json:"name"`
	Took time.Duration `json:"took_ns"`
	OK   bool          `json:"ok"`
	NA   bool          `json:"na,omitempty"` // not tried; Text says why
	Text string        `json:"text,omitempty"`
}

// Failed is the first step that was tried and failed, nil when none did.
func (r *Rehearsal) Failed() *RehearsalStep {
	for i := range r.Steps {
		if s := &r.Steps[i]; !s.OK && !s.NA {
			return s
		}
	}
	return nil
}

// AddressOf tells one device from another that got its name.
func AddressOf(t *config.Target) string {
	a := fmt.Sprintf("%s:%d", t.SSH.Host, t.SSH.Port)
	if len(t.SSH.Via) > 0 {
		a += " via " + strings.Join(t.SSH.Via, ", ")
	}
	return a
}

func rehearsalFile(runs, target string) string {
	return filepath.Join(runs, ".rehearsals", url.PathEscape(target)+".json")
}

// Save writes r below the folder of the run directories, over an earlier one.
func (r *Rehearsal) Save(runs string) error {
	path := rehearsalFile(runs, r.Target)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("the rehearsal of %s is not kept: %w", r.Target, err)
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = renameio.WriteFile(path, append(raw, '\n'), 0o666, renameio.WithTempDir(filepath.Dir(path)))
	}
	if err != nil {
		return fmt.Errorf("the rehearsal of %s is not kept: %w", r.Target, err)
	}
	return nil
}

// LoadRehearsal reads the newest rehearsal of a target. Without one the error is
// fs.ErrNotExist.
func LoadRehearsal(runs, target string) (*Rehearsal, error) {
	raw, err := os.ReadFile(rehearsalFile(runs, target))
	if err != nil {
		return nil, err
	}
	r := new(Rehearsal)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", rehearsalFile(runs, target), err)
	}
	return r, nil
}

// NotRehearsedError says that a sweep demands rehearsals that its targets lack.
type NotRehearsedError struct {
	Sweep  string
	Demand time.Duration
	Lacks  []string // one line for each target: what is missing and how to get it
}

func (e *NotRehearsedError) Error() string {
	return fmt.Sprintf("sweep %s demands a rehearsal within the last %s:\n  %s", e.Sweep, days(e.Demand), strings.Join(e.Lacks, "\n  "))
}

// CheckRehearsals refuses a plan whose sweep demands rehearsals that are missing,
// too old, failed, or of another device. It reads files and contacts nothing. The
// error is a *NotRehearsedError. Virtual targets need no rehearsal.
func CheckRehearsals(runs string, lab *config.Lab, p *plan.Plan, now time.Time) error {
	s := lab.Sweep(p.Sweep)
	if s == nil || s.Rehearsed <= 0 {
		return nil
	}
	bad := &NotRehearsedError{Sweep: s.Name, Demand: s.Rehearsed}
	for _, l := range p.Lanes {
		t := lab.Target(l.Target)
		if t == nil || targets.TraitsOf(t.Boot).Local {
			continue
		}
		if why := unrehearsed(runs, t, s.Rehearsed, now); why != "" {
			bad.Lacks = append(bad.Lacks, fmt.Sprintf("target %s: %s; run kernsweep target doctor %s", t.Name, why, t.Name))
		}
	}
	if bad.Lacks != nil {
		return bad
	}
	return nil
}

// unrehearsed says what is wrong with a target's newest rehearsal, "" if nothing.
func unrehearsed(runs string, t *config.Target, most time.Duration, now time.Time) string {
	r, err := LoadRehearsal(runs, t.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "never rehearsed"
	case err != nil:
		return err.Error()
	}
	age := now.Sub(r.When)
	switch failed := r.Failed(); {
	case r.Address != AddressOf(t):
		return fmt.Sprintf("rehearsed at another address, %s, and it is %s now", r.Address, AddressOf(t))
	case age < 0:
		return "rehearsed in the future, on " + r.When.Format("2006-01-02") + ": is the controller's clock right?"
	case age > most:
		return "rehearsed " + days(age) + " ago"
	case failed != nil:
		return fmt.Sprintf("its rehearsal %s ago failed at %q: %s", days(age), failed.Name, failed.Text)
	case len(r.Steps) == 0:
		return "its rehearsal has no steps"
	}
	return ""
}

// days shortens a long time for people.
func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", int(d/(24*time.Hour)))
	}
	return plan.Round(d)
}
