package validity

import (
	"kernsweep/orchestrator/results"
)

// runRule is a rule that needs more than one trial, or the files of a boot.
type runRule struct {
	Rule
	find func(*view) []results.Found
}

// runTable is the table of these rules, in the order that reports show them.
func runTable() []runRule {
	var t []runRule
	t = append(t, pairRules()...)
	t = append(t, configRules()...)
	t = append(t, cellRules()...)
	t = append(t, workRules()...)
	t = append(t, layoutRules()...)
	return append(t, bootRules()...)
}

// runRules are the rules that Run applies.
func runRules() []Rule {
	var rules []Rule
	for _, r := range runTable() {
		rules = append(rules, r.Rule)
	}
	return append(rules, unreadableRule())
}

// unreadableRule stands for all others: what could not be read was not checked.
func unreadableRule() Rule {
	return Rule{Name: "evidence unreadable", Threshold: "every file of a boot that is there can be read",
		Why: "A check that could not be made would look like one that was passed."}
}

// Run applies the rules that need more than one trial: about cells, pairs of
// kernels, boots and targets. A file that is there and cannot be read is a finding
// of its own.
func Run(run *results.Run, s *results.State) []results.Found {
	if s == nil || s.Model == nil {
		return nil
	}
	v := newView(run, s)
	var out []results.Found
	for _, r := range runTable() {
		for _, f := range r.find(v) {
			f.Rule, f.Threshold, f.Hard = r.Name, r.Threshold, r.Hard
			out = append(out, f)
		}
	}
	return append(out, v.files.unread()...)
}
