// Package workloads holds what is run and measured: the contract, and one file
// or folder per workload. A workload is a struct that config decodes from its
// block merged with one scenario; it runs one trial and, apart from that, reads
// values from the raw files the trial left, so that a report can be rebuilt.
package workloads

import (
	"context"
	"encoding/json"
	"io/fs"
	"time"

	"kernsweep/targets"
)

// Direction of a metric.
type Direction string

// Directions.
const (
	HigherIsBetter Direction = "higher"
	LowerIsBetter  Direction = "lower"
	Informative    Direction = "info" // never compared
)

// Metric is a named quantity.
type Metric struct {
	Name    string    `json:"name"`
	Unit    string    `json:"unit"` // "Mbit/s", "s", "us", "1/s", "%", "count"
	Better  Direction `json:"better"`
	Primary bool      `json:"primary,omitempty"` // the one a verdict is about; one per workload by default
}

// Value is one metric of one trial. Missing, when set, is the reason why there
// is no value, and Value is then meaningless (law 6).
type Value struct {
	Metric
	Value   float64 `json:"value,omitempty"`
	Missing string  `json:"missing,omitempty"`
	// Resolution is the step the tool printed with, 0 when unknown or exact.
	Resolution float64 `json:"resolution,omitempty"`
	// N and SD: Value is an average that the tool printed over N runs, with this
	// sample standard deviation, and the runs themselves are not on file. N below
	// 2: Value is one measurement.
	N  int     `json:"n,omitempty"`
	SD float64 `json:"sd,omitempty"`
	// Each is the series that Value is the mean of, where it is on file. Its
	// members are measurements of one boot.
	Each []float64 `json:"each,omitempty"`
}

// MarshalJSON gives the value, 0 too, or the reason and no value: a reader that
// looks for a value only must not find one.
func (v Value) MarshalJSON() ([]byte, error) {
	type plain Value // its value is that of the outer field
	out := struct {
		plain
		Value *float64 `json:"value,omitempty"`
	}{plain: plain(v)}
	if v.Missing == "" {
		out.Value = &v.Value
	}
	return json.Marshal(out)
}

// Parsed is what a trial's raw files say.
type Parsed struct {
	Values   []Value  `json:"values"`
	Warnings []string `json:"warnings,omitempty"` // soft validity findings, a sentence each
	Notes    []string `json:"notes,omitempty"`    // facts kept: versions, odd lines
}

// FailedError says that the workload failed: outcome "failed".
type FailedError struct{ Reason string }

func (e *FailedError) Error() string { return e.Reason }

// InvalidError says that a hard validity check failed: outcome "invalid".
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return e.Reason }

// UnavailableError says that the trial cannot be had on this target, kernel or
// scheduler: n/a with this reason, and no failure.
type UnavailableError struct{ Reason string }

func (e *UnavailableError) Error() string { return e.Reason }

// Needs says what a workload wants of its target, for the plan.
type Needs struct {
	Peer    bool   // a second machine, locked for each trial
	GoAgent string // why the Go agent is needed ("" = the shell agent will do)
}

// Workload is one scenario of one workload block.
type Workload interface {
	// Check refuses parameters that make no sense; it touches nothing.
	Check() error
	Needs() Needs
	// Metrics it yields, the primary one marked.
	Metrics() []Metric
	// Estimate is the expected length of one trial.
	Estimate() time.Duration
	// Run executes one trial. The raw files are in env.Dir afterwards, whatever
	// the error. An error that is none of the types above is infrastructure.
	// It is called a second time, in the same Dir and over agents that begin
	// nothing, to take up a trial that an earlier session left: nothing of the
	// trial's own may be done again then, and no file may be lost.
	Run(ctx context.Context, env *Env) error
	// Parse reads the values from an attempt's raw files. It is pure.
	Parse(files fs.FS) (Parsed, error)
}

// Preparer is a workload with work to do once per boot before its trials:
// looking for its tools, unpacking a tree, a warm-up.
type Preparer interface {
	Prepare(ctx context.Context, env *Env) error
}

// Common are the attributes every workload block takes.
type Common struct {
	Deadline  time.Duration     `hcl:"deadline,optional" doc:"a trial longer than this has failed (default: 3 x its estimate + 1m)"`
	Sample    time.Duration     `hcl:"sample,optional" doc:"interval of the vmstat samples (default 1s; \"0s\": only begin and end)"`
	Timeslice time.Duration     `hcl:"timeslice,optional" doc:"set through the running scheduler's own knob, read back, restored after the trial"`
	Knobs     map[string]string `hcl:"knobs,optional" doc:"files below /proc/sys, /sys to write before the trial; read back, restored after"`
	Peer      string            `hcl:"peer,optional" doc:"\"controller\" (default) or target.NAME"`
}

// Env is what a trial may use.
type Env struct {
	Target Side
	Peer   Side // zero without a peer
	Dir    string
	// Scale multiplies fixed work, equal for all kernels of a target.
	Scale    float64
	CPUs     int // online on the target
	Deadline time.Duration
	Sample   time.Duration
	Tools    map[string]string // tool name -> path or version on the target, from the probe
	// Ended, when set, is told how the measured task ended before anything is
	// collected (law 3). Workloads hand it to their target's Task.
	Ended func(how string)
	// Made, when set, is told of a directory that a workload made on the target
	// for several trials. It is removed when the lane leaves the target.
	Made func(dir string)
}

// Side is one end of a trial.
type Side struct {
	Conn    targets.Conn
	Agent   Agent
	Network targets.Network
}

// Task is one thing an agent runs under its sampler.
type Task struct {
	// Argv of the agent's task: "exec", "--", "iperf", "-s"; or "crunch", …
	Argv []string
	Env  []string // extra environment, KEY=value
	// Listen, when not 0, is a TCP port that must become owned by the task;
	// Ready is called then, before anything is measured.
	Listen int
	UDP    bool // Listen is a UDP port
	Ready  func()
	// Ended, when set, is called once when the task is over, or its link is
	// lost, before the spool is read: "ok", "failed: …", "timeout", "link lost: …".
	Ended func(how string)
	// StopAfter ends the task in good order (TERM, then KILL): a server.
	StopAfter time.Duration
	Deadline  time.Duration // ends it as a failure
	Sample    time.Duration // 0 = begin and end only
	// Dir receives spool, stdout, stderr and vmstat.csv; Prefix goes before their names.
	Dir, Prefix string
}

// Agent runs tasks on one machine: the Go agent or the POSIX shell agent.
type Agent interface {
	// Run runs one task. The raw files are in t.Dir afterwards as far as they
	// could be had. A task that fails is no error: Parse finds it in the spool.
	Run(ctx context.Context, t Task) error
	// Kind is "go" or "shell".
	Kind() string
}
