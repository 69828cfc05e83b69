package web

import (
	"time"

	"kernsweep/orchestrator/live"
	"kernsweep/orchestrator/results"
)

// Status is how a run stands.
type Status struct {
	Run      string                  `json:"run"`
	Sweep    string                  `json:"sweep,omitempty"`
	State    string                  `json:"state"`              // starting, running, ended, interrupted, not begun, died without a word, or unreadable
	Created  time.Time               `json:"created,omitzero"`   // when the run was made
	Ended    time.Time               `json:"ended,omitzero"`     // when its newest session ended
	Exit     *int                    `json:"exit,omitempty"`     // status of the command, by the run's final state; absent while it runs
	Outcomes map[results.Outcome]int `json:"outcomes,omitempty"` // trials
	Missing  int                     `json:"missing"`            // planned trials without any attempt
	Needs    []Need                  `json:"needs,omitempty"`    // what somebody has to look at
	Verdict  string                  `json:"verdict,omitempty"`  // what was found, in a few words
	Next     string                  `json:"next,omitempty"`     // the command that it asks for
	Notes    []string                `json:"notes,omitempty"`    // what is wrong with its files, a sentence each
}

// Need is something of a run that asks for a person.
type Need struct {
	Text    string `json:"text"`              // what is wrong, and why
	Command string `json:"command,omitempty"` // what to give next; absent: nothing helps
}

// Live says that a controller executes the run.
func (s Status) Live() bool {
	return s.State == string(live.Executing) || s.State == string(live.Starting)
}

// Target is a target of the configuration.
type Target struct {
	Name      string     `json:"name"`
	Class     string     `json:"class,omitempty"`
	Arch      string     `json:"arch,omitempty"`
	Address   string     `json:"address,omitempty"`
	Boot      string     `json:"boot,omitempty"` // labels of its driver blocks
	Power     string     `json:"power,omitempty"`
	Console   string     `json:"console,omitempty"`
	Known     bool       `json:"known"`               // the configuration has it
	Virtual   bool       `json:"virtual,omitempty"`   // it exists only while it is used
	Rehearsal *Rehearsal `json:"rehearsal,omitempty"` // the newest; absent: never rehearsed
	State     string     `json:"state"`               // free, leased, or how its lane stands
	By        string     `json:"by,omitempty"`        // who leases it
	Run       string     `json:"run,omitempty"`       // that it has a lane in
	Doing     string     `json:"doing,omitempty"`     // its lane
}

// Rehearsal is what `kernsweep target doctor` found.
type Rehearsal struct {
	When time.Time `json:"when"`
	OK   bool      `json:"ok"`
	Text string    `json:"text,omitempty"` // the first step that failed
}

// Lease is a thing that somebody uses.
type Lease struct {
	What  string    `json:"what"` // "target box", or the name of a shared thing
	By    string    `json:"by"`
	Run   string    `json:"run,omitempty"`
	Since time.Time `json:"since"`
	State string    `json:"state"` // held, or why it is doubtful
}

// Targets is what /api/targets answers.
type Targets struct {
	Targets []Target `json:"targets"`
	Note    string   `json:"note,omitempty"` // why targets are missing
}

// Leases is what /api/leases answers.
type Leases struct {
	Leases []Lease `json:"leases"`
	Note   string  `json:"note,omitempty"` // why they are not known
}

// Runs is what /api/runs answers.
type Runs struct {
	Runs []Status `json:"runs"`           // the newest first
	More string   `json:"more,omitempty"` // address of older ones
}

// RunDocument is what /api/runs/{run} answers.
type RunDocument struct {
	Status Status    `json:"status"`
	View   live.View `json:"view"` // without its events
}

// LaneDocument is what /api/runs/{run}/lanes/{lane} answers.
type LaneDocument struct {
	Run    string        `json:"run"`
	Lane   live.LaneView `json:"lane"`
	Boots  []BootSummary `json:"boots"`  // the newest first
	Events []live.Event  `json:"events"` // the newest, oldest first
}

// BootSummary is a boot of a lane.
type BootSummary struct {
	Number    int       `json:"number"`
	Kernel    string    `json:"kernel"`
	Asked     time.Time `json:"asked"`
	Outcome   string    `json:"outcome"` // ok, boot-failed, lost, or the phase of one that is not judged
	Stage     string    `json:"stage,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Release   string    `json:"release,omitempty"`
	Proven    bool      `json:"proven"`
	LastLines []string  `json:"last_lines,omitempty"` // of its console
	Folder    string    `json:"folder"`               // below the run directory
}

// Events is what /api/runs/{run}/events answers.
type Events struct {
	Events []live.Event `json:"events"` // oldest first
	More   bool         `json:"more"`   // there are later ones: ask again, after the last seq
}

// ControlRequest is what is posted to /api/runs/{run}/control.
type ControlRequest struct {
	Action string `json:"action"`           // pause, go-on, skip-trial, skip-kernel, quarantine or stop
	Lane   string `json:"lane,omitempty"`   // all but stop are about one
	Kernel string `json:"kernel,omitempty"` // of skip-kernel; absent: the one that runs
	Why    string `json:"why,omitempty"`    // for the journal
}

// ControlAnswer says what will happen, or has happened.
type ControlAnswer struct {
	Said string `json:"said"`
}

// Problem is an error (RFC 9457).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"` // what went wrong and what to do
}
