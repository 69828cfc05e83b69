package results

// Finding is what a validity rule has to say against a trial, a cell or a pair
// of cells. A hard one of a trial makes it invalid; a hard one of a cell or a
// pair makes their comparisons invalid; a soft one stands beside the number.
type Finding struct {
	Rule      string `json:"rule"` // its name in the table of orchestrator/validity
	Hard      bool   `json:"hard,omitempty"`
	Text      string `json:"text"`                // one sentence
	Evidence  string `json:"evidence,omitempty"`  // the figures it rests on, with units
	Threshold string `json:"threshold,omitempty"` // what would have passed
}

// Found is a finding and what it is about. Empty fields stand for all: with
// only Target set it is about all that the target measured.
type Found struct {
	Finding
	Target   string `json:"target,omitempty"`
	Kernel   string `json:"kernel,omitempty"`
	Against  string `json:"against,omitempty"` // of a pair: the other kernel
	Workload string `json:"workload,omitempty"`
	Scenario string `json:"scenario,omitempty"`
	Metric   string `json:"metric,omitempty"`
	Boot     int    `json:"boot,omitempty"`   // 0: not about one
	Trials   int    `json:"trials,omitempty"` // in how many, when it was found in trials
	// Detail is a long list behind the sentence (kernel configuration options).
	Detail []string `json:"detail,omitempty"`
}

// About reports whether the finding concerns a cell: alone, or compared with
// the same cell of kernel against ("" = alone).
func (f *Found) About(c Cell, against string) bool {
	same := func(mine, its string) bool { return mine == "" || mine == its }
	if !same(f.Target, c.Target) || !same(f.Workload, c.Workload) || !same(f.Scenario, c.Scenario) {
		return false
	}
	if f.Against != "" {
		return f.Kernel == c.Kernel && f.Against == against || f.Kernel == against && f.Against == c.Kernel
	}
	return same(f.Kernel, c.Kernel) || against != "" && same(f.Kernel, against)
}
