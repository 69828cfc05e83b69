// Package results holds the vocabulary of a run (Cell, Trial, Outcome), its run
// directory and its journal. The journal is the truth; everything else can be
// rebuilt from it and the raw files.
package results

import (
	"fmt"
	"time"

	"kernsweep/targets"
	"kernsweep/workloads"
)

// Cell is what is compared. It is made once, by plan, and is the map key everywhere.
type Cell struct {
	Target   string `json:"target"`
	Kernel   string `json:"kernel"`
	Workload string `json:"workload"` // "iperf.to_target"
	Scenario string `json:"scenario"` // "default" when the workload has none
}

func (c Cell) String() string {
	return fmt.Sprintf("%s/%s/%s.%s", c.Target, c.Kernel, c.Workload, c.Scenario)
}

// Slot is one planned execution of a cell. Its identity is Key: a retry or a
// rerun fills the same key in another boot, or as another attempt in the same
// boot, and the newest valid attempt counts.
type Slot struct {
	Cell
	Block  int `json:"block"`  // planned block, from 1
	Repeat int `json:"repeat"` // 1 … repeat inside one boot; 0 and below: warm-up, kept but not counted
	Boot   int `json:"boot"`   // the boot it really ran in: numbered per lane, never reused
}

// SlotKey identifies a planned slot whatever boot it ran in.
type SlotKey struct {
	Cell
	Block, Repeat int
}

// Key of the slot.
func (s Slot) Key() SlotKey { return SlotKey{s.Cell, s.Block, s.Repeat} }

// Outcome of a trial.
type Outcome string

// Outcomes (DESIGN.md section 2).
const (
	OK            Outcome = "ok"
	Failed        Outcome = "failed"
	BootFailed    Outcome = "boot-failed"
	Lost          Outcome = "lost"
	Skipped       Outcome = "skipped"
	Invalid       Outcome = "invalid"
	Interrupted   Outcome = "interrupted"
	NotApplicable Outcome = "n/a"
)

// Kind of a journal record.
type Kind string

// Record kinds.
const (
	KindRun     Kind = "run"     // a controller began or ended: Note says which
	KindPhase   Kind = "phase"   // a boot entered a phase
	KindBoot    Kind = "boot"    // a boot was judged
	KindStarted Kind = "started" // a trial began
	KindEnded   Kind = "ended"   // how it ended, before anything is collected (law 3)
	KindJudged  Kind = "judged"  // outcome and values, after the evidence was read
	KindNote    Kind = "note"
	KindLane    Kind = "lane"   // a lane began, ended or was quarantined: Note
	KindTask    Kind = "task"   // where a trial's agent is about to write its spool
	KindKnob    Kind = "knob"   // a knob of the target was set, or restored
	KindCut     Kind = "cut"    // what a lane leaves out, because it would not end in time
	KindEnough  Kind = "enough" // what a lane leaves out, because its intervals are narrow
)

// known tells the kinds that this version writes.
func (k Kind) known() bool {
	switch k {
	case KindRun, KindPhase, KindBoot, KindStarted, KindEnded, KindJudged, KindNote, KindLane, KindTask, KindKnob, KindCut, KindEnough:
		return true
	}
	return false
}

// Beginnings of the Note of KindRun and KindLane records. More text may follow
// after ": "; the cause of a quarantine stands in Record.Reason.
const (
	NoteBegan       = "began"
	NoteEnded       = "ended"
	NoteInterrupted = "interrupted" // ended, by the user or a signal
	NoteQuarantined = "quarantined"
	NoteGivenUp     = NoteQuarantined + ": by hand" // Reason begins with SkippedBy
	// A lane that somebody paused begins nothing until it goes on.
	NotePaused = "paused"
	NoteGoesOn = "goes on"
)

// Record is one line of the journal. Seq is the controller's receive order,
// LaneSeq counts within a lane (0 for records of no lane).
type Record struct {
	Seq     int       `json:"seq"`
	Run     string    `json:"run,omitempty"` // RunMeta.ID of the run it belongs to
	Lane    string    `json:"lane,omitempty"`
	LaneSeq int       `json:"lane_seq,omitempty"`
	At      time.Time `json:"at"`              // the controller's wall clock: information, never order
	UpMS    int64     `json:"up_ms,omitempty"` // since its writer was opened, by a clock that never jumps
	Kind    Kind      `json:"kind"`

	Slot    *Slot             `json:"slot,omitempty"`
	Attempt int               `json:"attempt,omitempty"`
	Phase   targets.Phase     `json:"phase,omitempty"`
	Boot    *Boot             `json:"boot,omitempty"`
	Outcome Outcome           `json:"outcome,omitempty"`
	Reason  string            `json:"reason,omitempty"`  // why the outcome is not ok; first cause
	Collect string            `json:"collect,omitempty"` // a collection error, beside the verdict
	Parsed  *workloads.Parsed `json:"parsed,omitempty"`
	Summary *Activity         `json:"activity,omitempty"`
	Peer    *Activity         `json:"peer_activity,omitempty"` // of the other end, where its spool is on file
	Note    string            `json:"note,omitempty"`
	Task    *Task             `json:"task,omitempty"`
	Knob    *KnobChange       `json:"knob,omitempty"`
	Cut     *Cut              `json:"cut,omitempty"`
	Enough  *Enough           `json:"enough,omitempty"`
	// Findings of the validity rules about the trial; a hard one made it invalid.
	Findings []Finding `json:"findings,omitempty"`
}

// Task is where the evidence of a running task is found, by whoever resumes the run.
type Task struct {
	Machine string `json:"machine"`          // name of the target; "" = the controller
	BootID  string `json:"boot_id"`          // of the machine
	Spool   string `json:"spool"`            // path there; the agent's pid and start time stand in it
	Prefix  string `json:"prefix,omitempty"` // of the names of the raw files here
}

// KnobChange is a knob that a trial set and that is owed back to the boot.
type KnobChange struct {
	targets.Knob
	BootID   string `json:"boot_id"`
	Restored bool   `json:"restored,omitempty"`
}

// Cut says that a lane starts nothing more in this session, though nothing is
// wrong: it would not end before Until.
type Cut struct {
	Until  time.Time `json:"until"`
	Block  int       `json:"block"`  // the first that is not measured
	Trials int       `json:"trials"` // left out, warm-ups not counted
}

// Enough says that a lane of a sweep with boots = "auto" needs no more blocks.
// The widths of intervals decide, never where they lie.
type Enough struct {
	Blocks int    `json:"blocks"` // measured; the planned ones after them are left out
	Widest string `json:"widest"` // the cell and metric whose interval is the widest
	// HalfWidth of that cell's 95 % interval, as a share of its mean, and what was
	// asked for.
	HalfWidth float64 `json:"half_width"`
	Wanted    float64 `json:"wanted"`
}

// Boot is a judged boot in the journal.
type Boot struct {
	Number    int                `json:"number"`
	Kernel    string             `json:"kernel"`
	Block     int                `json:"block"`
	Outcome   Outcome            `json:"outcome"` // ok, boot-failed, lost
	Record    targets.BootRecord `json:"record"`
	Stage     string             `json:"stage,omitempty"`
	Reason    string             `json:"reason,omitempty"`
	LastLines []string           `json:"last_lines,omitempty"`
	// Declared: nobody saw the boot, but whoever imported its figures says that it
	// was one of its own. "" = no one does.
	Declared string `json:"declared,omitempty"`
}

// Activity is the vmstat summary of one trial on its target.
type Activity struct {
	Samples    int     `json:"samples"`
	Seconds    float64 `json:"seconds"`
	Switches   float64 `json:"switches_per_s"`
	Interrupts float64 `json:"interrupts_per_s"`
	User       float64 `json:"user_pct"`
	System     float64 `json:"system_pct"`
	Idle       float64 `json:"idle_pct"`
	Wait       float64 `json:"wait_pct"`
	Steal      float64 `json:"steal_pct"`
	// RunDelay and Timeslices are from /proc/schedstat, over all CPUs: how many
	// milliseconds tasks waited for a CPU, and how many slices they got, per second.
	// nil: the kernel keeps no such account, or the agent did not read it; Missing
	// then has "run_delay" and "timeslices", but in journals of earlier versions.
	RunDelay   *float64 `json:"run_delay_ms_per_s,omitempty"`
	Timeslices *float64 `json:"timeslices_per_s,omitempty"`
	Missing    []string `json:"missing,omitempty"` // vmstat columns no sample had ("cs", "st"): their fields mean nothing
	Warnings   []string `json:"warnings,omitempty"`
}
