package report

import (
	"time"

	"kernsweep/orchestrator/compare"
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/workloads"
)

// DocumentFormat is the version of the JSON schema. Fields are added without a
// new version; one that changes its meaning makes a new one.
const DocumentFormat = 1

// Document is a whole report as data: what --format json prints.
type Document struct {
	Format     int                     `json:"format"`                   // DocumentFormat
	Run        results.RunMeta         `json:"run"`                      // run.json
	Running    string                  `json:"running,omitempty"`        // the process that executes the run now; "" = none
	ExitStatus int                     `json:"exit_status"`              // as far as it is known
	Damage     []string                `json:"journal_damage,omitempty"` // what is wrong with the journal; such records are not counted
	Doubtful   int                     `json:"journal_doubtful,omitempty"`
	Sessions   []results.Session       `json:"sessions"`
	Targets    []Target                `json:"targets"`
	Workloads  []Workload              `json:"workloads"`
	Boots      []Boot                  `json:"boots"`
	Failures   []Failure               `json:"failures"`
	Mixed      []Mixed                 `json:"mixed_blocks,omitempty"`
	Repeated   []Repeated              `json:"repeated,omitempty"` // slots with several attempts
	Later      []Later                 `json:"later,omitempty"`    // what was skipped at first, and executed by a later session
	Notes      []Note                  `json:"notes,omitempty"`    // of the journal
	Judgement  *compare.Judgement      `json:"judgement"`
	Design     results.Design          `json:"design"`
	Kernels    []results.PlannedKernel `json:"kernels"`

	program string // how the reader calls kernsweep; "" = kernsweep
}

// Target is a lane.
type Target struct {
	results.PlannedTarget
	Quarantined string                  `json:"quarantined,omitempty"` // why; "" = it is not
	Taken       string                  `json:"taken,omitempty"`       // another controller got the target in the middle
	Cut         *results.Cut            `json:"cut,omitempty"`         // what --until left out; absent: nothing
	Enough      *results.Enough         `json:"enough,omitempty"`      // boots = "auto" came to its end; absent: it did not
	Ended       bool                    `json:"ended"`                 // the lane came to its end
	Outcomes    map[results.Outcome]int `json:"outcomes"`              // of slots, by their final state, warm-ups left out
	NotRun      int                     `json:"not_run"`               // planned slots the journal knows nothing of
	Kernels     []Kernel                `json:"kernels"`
}

// Kernel is a kernel on one target.
type Kernel struct {
	Name       string                  `json:"name"`
	Want       string                  `json:"want,omitempty"` // scheduler it is configured to have
	Releases   []string                `json:"releases"`       // uname -r of the boots that counted
	Schedulers []string                `json:"schedulers"`     // what the probe found
	Boots      map[results.Outcome]int `json:"boots"`          // of each block the one that decides, by outcome
	Replaced   int                     `json:"replaced_boots"` // judged boots that a later one of their block replaced
	BootIDs    int                     `json:"boot_ids"`       // distinct ones of all boots that were ok, replaced ones included
	Unproven   []string                `json:"unproven,omitempty"`
	DidNotBoot *BootFailure            `json:"did_not_boot,omitempty"` // set when no boot counted and one failed
}

// BootFailure is how far a kernel came.
type BootFailure struct {
	Stage     string   `json:"stage"`
	Reason    string   `json:"reason"`
	LastLines []string `json:"last_lines,omitempty"` // of the console, newest last
}

// Workload is one workload block and its cells, in the plan's order.
type Workload struct {
	ID    string `json:"id"`   // "iperf.to_target"
	Kind  string `json:"kind"` // "iperf"
	Cells []Cell `json:"cells"`
}

// Cell is (target, kernel, workload, scenario) with its figures.
type Cell struct {
	results.PlannedCell
	Outcomes map[results.Outcome]int `json:"outcomes"`
	NotRun   int                     `json:"not_run"`
	// Empty says why the cell has no figures at all; "" = it has some.
	Empty      string       `json:"empty,omitempty"`
	DidNotBoot *BootFailure `json:"did_not_boot,omitempty"`
	Figures    []Figure     `json:"figures"`
	Activity   *Activity    `json:"activity,omitempty"`
	// Findings of the validity rules about the trials that decide, a rule once,
	// with the text of the first and how many trials it was found in.
	Findings []results.Found `json:"findings,omitempty"`
	Warnings []Counted       `json:"warnings,omitempty"`
	Trials   []Trial         `json:"trials"` // every attempt, in the journal's order
}

// Figure is the summary of one metric of a cell.
type Figure struct {
	workloads.Metric
	stats.Summary
	Missing []Counted `json:"missing,omitempty"` // reasons of values that are not there
	// Reported are the values that are averages which a tool printed, the runs
	// behind them not being on file.
	Reported []Reported `json:"reported,omitempty"`

	boots []int // numbers of the boots of Raw
}

// Reported is what a tool said of the runs behind the one value of a boot.
type Reported struct {
	Boot int     `json:"boot"`
	N    int     `json:"n"`  // runs
	SD   float64 `json:"sd"` // their sample standard deviation, in the metric's unit
}

// Counted is a text and in how many trials it occurred.
type Counted struct {
	Text   string `json:"text"`
	Trials int    `json:"trials"`
}

// Activity is the median over the counted trials of their vmstat means.
type Activity struct {
	Trials     int          `json:"trials"`
	Switches   stats.Number `json:"switches_per_s"`
	Interrupts stats.Number `json:"interrupts_per_s"`
	User       stats.Number `json:"user_pct"`
	System     stats.Number `json:"system_pct"`
	Idle       stats.Number `json:"idle_pct"`
	Wait       stats.Number `json:"wait_pct"`
	Steal      stats.Number `json:"steal_pct"`
}

// Trial is one attempt of one slot.
type Trial struct {
	Block    int               `json:"block"`
	Boot     int               `json:"boot"`
	Repeat   int               `json:"repeat"` // 0 and below: a warm-up
	Attempt  int               `json:"attempt"`
	Session  int               `json:"session"` // of the run, from 1
	Counts   bool              `json:"counts"`  // its values are in the figures
	Outcome  results.Outcome   `json:"outcome"`
	Reason   string            `json:"reason,omitempty"`
	Collect  string            `json:"collect,omitempty"` // a collection error, beside the outcome
	Started  time.Time         `json:"started,omitzero"`
	Ended    time.Time         `json:"ended,omitzero"`
	Dir      string            `json:"dir,omitempty"` // below the run directory
	Values   []workloads.Value `json:"values,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Notes    []string          `json:"notes,omitempty"`
	Activity *results.Activity `json:"activity,omitempty"`
	Findings []results.Finding `json:"findings,omitempty"` // of the validity rules
}

// Boot is a boot of a lane.
type Boot struct {
	Lane   string        `json:"lane"`
	Number int           `json:"number"`
	Asked  time.Time     `json:"asked"`
	Judged time.Time     `json:"judged,omitzero"`
	Result *results.Boot `json:"result,omitempty"` // absent: never judged
}

// Failure is something a person has to look at.
type Failure struct {
	Target    string          `json:"target"`
	Kernel    string          `json:"kernel,omitempty"`
	What      string          `json:"what"` // "boot 3", "iperf.to_target default, block 1, repeat 2", "lane"
	Outcome   results.Outcome `json:"outcome,omitempty"`
	Stage     string          `json:"stage,omitempty"`
	Reason    string          `json:"reason"`
	LastLines []string        `json:"last_lines,omitempty"`
	Again     string          `json:"again"`           // the command that repeats it
	Count     int             `json:"count,omitempty"` // how many alike, when more than one
	Boot      int             `json:"boot,omitempty"`  // its number, or that of the first trial; 0: no one boot's
	At        time.Time       `json:"at,omitzero"`     // when the first was known
}

// Note is a note of the journal.
type Note struct {
	At   time.Time `json:"at"`
	Lane string    `json:"lane,omitempty"`
	Text string    `json:"text"`
}
