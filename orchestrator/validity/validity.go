// Package validity holds the rules that say why a number may not be believed:
// each has a name, a threshold, evidence and one sentence. Hard rules about a
// trial make it invalid, hard rules about cells make their comparisons invalid;
// soft ones are printed next to the number. It reads what is on file and
// contacts nothing.
package validity

import (
	"kernsweep/orchestrator/results"
)

// Rule is a row of the table of rules.
type Rule struct {
	Name      string
	Hard      bool
	Threshold string // what passes, in words
	Why       string // one sentence: what it would mean to ignore it
}

// Run applies the rules that need more than one trial: about cells, pairs of
// kernels, and targets.
func Run(run *results.Run, s *results.State) []results.Found {
	return nil
}
