// Package compare turns what a run measured into claims: for each target,
// workload, scenario and kernel the difference from the baseline, what follows
// from it, and what does not. It reads a run's state and the findings of the
// validity rules; it contacts nothing and prints nothing.
package compare

import (
	"kernsweep/orchestrator/results"
	"kernsweep/orchestrator/stats"
	"kernsweep/targets"
	"kernsweep/workloads"
)

// Options of a judgement. The zero value is stats.Defaults without findings.
type Options struct {
	Findings []results.Found // of orchestrator/validity
	Floors   Floors          // noise floors of devices, from A/A runs
	Rules    stats.Rules     // zero: stats.Defaults, and what the run's plan declares
}

// Judgement is everything that is claimed about a run.
type Judgement struct {
	Rules       stats.Rules     `json:"rules"`
	Family      int             `json:"family"` // primary comparisons that Holm's correction spans
	Comparisons []Comparison    `json:"comparisons"`
	Overall     []Overall       `json:"overall,omitempty"`
	Worth       []Worth         `json:"worth,omitempty"` // cells most worth more boots, the first most
	Notes       []string        `json:"notes,omitempty"` // about all comparisons: order and kernel mixed up, …
	Findings    []results.Found `json:"findings,omitempty"`
}

// Key says what is compared with what.
type Key struct {
	Target   string `json:"target"`
	Workload string `json:"workload"`
	Scenario string `json:"scenario"`
	Kernel   string `json:"kernel"`
	Baseline string `json:"baseline"`
}

// Comparison is one metric of one cell beside its baseline.
type Comparison struct {
	Key
	Metric  workloads.Metric `json:"metric"`
	Primary bool             `json:"primary"` // of the family; others have an interval and no verdict
	Verdict stats.Verdict    `json:"verdict,omitempty"`
	// Sentence is the claim for a tired person: what was observed, what follows,
	// and what is missing where nothing follows.
	Sentence string `json:"sentence"`
	stats.Comparison
	Holm       stats.Number `json:"p_holm"`                // only of primary ones
	Effect     float64      `json:"effect"`                // smallest effect of interest used, as a share
	EffectFrom string       `json:"effect_from,omitempty"` // "" = the default; else the A/A run
	Base       stats.Number `json:"base"`                  // geometric mean of the baseline's boot values; mean where one is 0 or negative
	Value      stats.Number `json:"value"`                 // the same of the kernel
	// Within compares the trials inside single boots, where there is but one boot
	// on a side: it says whether they separate, and nothing about kernels.
	Within   *Within           `json:"within,omitempty"`
	Findings []results.Finding `json:"findings,omitempty"` // hard and soft, of either side and of the pair
	Moved    []Moved           `json:"moved,omitempty"`    // counters that moved with it
	// NoiseFloor of an A/A run, where Kernel is Baseline: the half width of the
	// interval, as a share, or its far end where the device disagrees with itself.
	NoiseFloor  *float64 `json:"noise_floor,omitempty"`
	More        int      `json:"more_boots,omitempty"` // boots of each kernel that may settle it; 0: none needed
	MoreCommand string   `json:"more_command,omitempty"`
}

// Within is Welch's t between the trials of one boot and those of another.
type Within struct {
	Trials   [2]int       `json:"trials"` // baseline, kernel
	T        stats.Number `json:"t"`
	DF       stats.Number `json:"df"`
	P        stats.Number `json:"p"`
	Separate bool         `json:"separate"` // P is at most 0.05
}

// Moved is a counter of the machine that changed beside a difference: an
// association, never a cause.
type Moved struct {
	Counter  string       `json:"counter"` // "context switches", "user time share", …
	Unit     string       `json:"unit"`
	Base     stats.Number `json:"base"` // medians over trials
	Value    stats.Number `json:"value"`
	Clear    bool         `json:"clear"` // the values of the two kernels do not overlap
	Sentence string       `json:"sentence"`
}

// Overall is one figure over all workloads of a target: the geometric mean of
// the blocks' gains, each workload of equal weight. Gain is positive when the
// kernel is better, as a share.
type Overall struct {
	Target    string       `json:"target"`
	Kernel    string       `json:"kernel"`
	Baseline  string       `json:"baseline"`
	Workloads []string     `json:"workloads"`
	Blocks    int          `json:"blocks"` // in which every one of them is valid for both kernels
	Gain      stats.Number `json:"gain"`
	Low       stats.Number `json:"ci95_low"`
	High      stats.Number `json:"ci95_high"`
	Sentence  string       `json:"sentence"`
}

// Worth is a cell for which more boots may change the answer.
type Worth struct {
	Key
	Metric  string `json:"metric"`
	Boots   int    `json:"boots"` // more, of each kernel
	Why     string `json:"why"`
	Command string `json:"command"`
}

// Floors are the noise floors of devices, by what was measured.
type Floors map[FloorKey]Floor

// FloorKey is what a noise floor belongs to.
type FloorKey struct{ Target, Workload, Scenario, Metric string }

// Floor is the half width of the 95 % interval of a kernel against itself.
type Floor struct {
	HalfWidth float64 `json:"half_width"` // as a share
	Run       string  `json:"run"`
	Kernel    string  `json:"kernel"`
	Date      string  `json:"date"` // 2026-11-30
	Boots     int     `json:"boots"`
	// Machine that it was measured on; nil: not known. On another one that goes by
	// the target's name it does not count.
	Machine *targets.Identity `json:"machine,omitempty"`
}
