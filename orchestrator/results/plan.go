package results

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"kernsweep/workloads"
)

// PlanSummary is what readers of a run need to know of its plan: what was meant
// to run, so that what is missing can be shown. It is "summary" in plan.json.
type PlanSummary struct {
	Sweep   string          `json:"sweep"`
	Seed    int64           `json:"seed"`
	Targets []PlannedTarget `json:"targets"` // in lane order
	Kernels []PlannedKernel `json:"kernels"` // in the sweep's order
	// Cells in the order reports show them. A cell stands here once.
	Cells []PlannedCell `json:"cells"`
	// Metrics by "WORKLOAD.SCENARIO", in the workload's order.
	Metrics map[string][]workloads.Metric `json:"metrics"`
	Design  Design                        `json:"design"`
}

// Design is how a sweep measures and what it declared beforehand.
type Design struct {
	Order     string  `json:"order,omitempty"`      // "interleaved", "blocked"; "" = not known (an import)
	Auto      bool    `json:"auto,omitempty"`       // boots = "auto": blocks until HalfWidth, at most MaxBoots
	MinBoots  int     `json:"min_boots,omitempty"`  // of auto: never fewer
	MaxBoots  int     `json:"max_boots,omitempty"`  // of auto
	HalfWidth float64 `json:"half_width,omitempty"` // wanted half width of a 95 % interval, 0.01 = 1 %; 0: stats.Defaults
	Effect    float64 `json:"effect,omitempty"`     // smallest effect of interest, 0.01 = 1 %; 0: stats.Defaults
	// Primary are the declared primary comparisons: "WORKLOAD", "WORKLOAD.SCENARIO",
	// either with ":METRIC". Empty: the primary metric of every workload and scenario.
	Primary []string `json:"primary,omitempty"`
	// NoiseFloor: an A/A run. The one kernel of each lane is compared with itself.
	NoiseFloor bool `json:"noise_floor,omitempty"`
}

// PlannedTarget is a lane of the plan.
type PlannedTarget struct {
	Name      string `json:"name"`
	Arch      string `json:"arch,omitempty"`
	Boot      string `json:"boot,omitempty"`       // label of the boot method
	Emulated  bool   `json:"emulated,omitempty"`   // the machine is emulated
	HostBound bool   `json:"host_bound,omitempty"` // its figures depend on the controller's load
	Clock     string `json:"clock,omitempty"`      // targets.Network.Clock: "guest" = only the target's clock counts
	Boots     int    `json:"boots"`                // planned, all kernels together
	KnownGood string `json:"known_good,omitempty"`
}

// PlannedKernel is a kernel of the plan.
type PlannedKernel struct {
	Name      string `json:"name"`
	Scheduler string `json:"scheduler,omitempty"` // as configured
	Release   string `json:"release,omitempty"`   // glob
}

// PlannedCell is a cell of the plan.
type PlannedCell struct {
	Cell
	Baseline string `json:"baseline,omitempty"` // kernel of its matrix's baseline
	Boots    int    `json:"boots"`              // blocks
	Repeat   int    `json:"repeat"`             // trials that count, in each boot
	Warmup   int    `json:"warmup,omitempty"`   // trials that do not, in each boot
	NA       string `json:"na,omitempty"`       // why the cell will not run; "" = it will
	// Added are the numbers of the blocks that later sessions added (rerun --more).
	// State fills it in.
	Added []int `json:"added,omitempty"`
}

// planDoc is plan.json.
type planDoc struct {
	Summary PlanSummary     `json:"summary"`
	Plan    json.RawMessage `json:"plan"`
}

// WritePlan writes plan.json: the summary for readers, and the resolved plan
// that rerun and resume execute, which only its writer understands.
func (r *Run) WritePlan(summary PlanSummary, plan any) error {
	raw, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("run %s: plan: %w", r.dir, err)
	}
	if err := writeJSON(filepath.Join(r.dir, planFile), planDoc{Summary: summary, Plan: raw}); err != nil {
		return fmt.Errorf("run %s: %w", r.dir, err)
	}
	return nil
}

// ReadPlan reads plan.json; plan, when not nil, receives the resolved plan.
// Without the file the error is fs.ErrNotExist.
func (r *Run) ReadPlan(plan any) (PlanSummary, error) {
	b, err := readPlain(filepath.Join(r.dir, planFile))
	if err != nil {
		return PlanSummary{}, fmt.Errorf("run %s: %w", r.dir, err)
	}
	var doc planDoc
	err = json.Unmarshal(b, &doc)
	if err == nil && plan != nil {
		err = json.Unmarshal(doc.Plan, plan)
	}
	if err != nil {
		return PlanSummary{}, fmt.Errorf("run %s: %s is damaged: %w", r.dir, planFile, err)
	}
	if err := r.planIsOurs(doc.Plan); err != nil {
		return PlanSummary{}, err
	}
	return doc.Summary, nil
}

// planIsOurs refuses a plan that is not the one run.json was written for: trials
// that it lacks would be dropped in silence.
func (r *Run) planIsOurs(raw json.RawMessage) error {
	want, err := hex.DecodeString(r.Meta.PlanHash)
	if err != nil || len(want) != sha256.Size {
		return nil // a run without one: an import
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, raw); err != nil {
		return fmt.Errorf("run %s: %s is damaged: %w", r.dir, planFile, err)
	}
	if got := sha256.Sum256(plain.Bytes()); !bytes.Equal(got[:], want) {
		return fmt.Errorf("run %s: %s is not the plan that this run began with (hash %x…, %s has %x…): put back the right one; nothing was changed",
			r.dir, planFile, got[:4], metaFile, want[:4])
	}
	return nil
}

// State is everything a reader derives from a run.
type State struct {
	Journal *Journal
	Plan    PlanSummary // zero when the run has no plan.json (an import)
	Model   *Model
}

// State reads the journal and the plan. Records of lanes and cells that the plan
// does not have are doubtful: kept, noted, not counted.
func (r *Run) State() (*State, error) {
	j, err := r.Journal()
	if err != nil {
		return nil, err
	}
	p, err := r.ReadPlan(nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		j.onlyPlanned(p)
	}
	s := &State{Journal: j, Plan: p, Model: Load(j.Records)}
	r.addBlocks(s)
	return s, nil
}

func (j *Journal) onlyPlanned(p PlanSummary) {
	stranger := p.stranger()
	n := map[string]int{}
	j.Records = slices.DeleteFunc(j.Records, func(r Record) bool {
		what := stranger(&r)
		if what == "" {
			return false
		}
		n[what]++
		j.Doubtful = append(j.Doubtful, r)
		return true
	})
	for _, what := range slices.Sorted(maps.Keys(n)) {
		j.Notes = append(j.Notes, fmt.Sprintf("%d records of %s are NOT counted: the plan of this run has no such thing", n[what], what))
	}
}

// stranger names what the plan does not have of what a record is about, "" when
// it has it.
func (p PlanSummary) stranger() func(*Record) string {
	lanes, cells := map[string]bool{}, map[Cell]bool{}
	for _, t := range p.Targets {
		lanes[t.Name] = true
	}
	for _, c := range p.Cells {
		cells[c.Cell] = true
	}
	return func(r *Record) string {
		switch {
		case len(lanes) > 0 && r.Lane != "" && !lanes[r.Lane]:
			return fmt.Sprintf("lane %q", r.Lane)
		case r.Slot != nil && r.Slot.Workload != "" && len(cells) > 0 && !cells[r.Slot.Cell]: // a note may be about a boot
			return fmt.Sprintf("cell %q", r.Slot.Cell)
		case r.Slot != nil && r.Lane != "" && r.Slot.Target != r.Lane:
			return fmt.Sprintf("target %q, written by lane %q", r.Slot.Target, r.Lane)
		}
		return ""
	}
}
