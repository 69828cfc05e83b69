// Package validity holds the rules that say why a number may not be believed:
// each has a name, a threshold, evidence and one sentence. Hard rules about a
// trial make it invalid, hard rules about cells make their comparisons invalid;
// soft ones are printed next to the number. It reads what is on file and
// contacts nothing.
package validity

// Rule is a row of the table of rules.
type Rule struct {
	Name      string
	Hard      bool
	Threshold string // what passes, in words
	Why       string // one sentence: what it would mean to ignore it
}

// Rules is the whole table: the rules about a single trial, then those that need
// more than one.
func Rules() []Rule {
	var all []Rule
	for _, r := range trialRules() {
		all = append(all, r.Rule)
	}
	return append(all, runRules()...)
}
