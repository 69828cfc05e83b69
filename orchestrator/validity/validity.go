// Package validity holds the rules that say why a number may not be believed:
// each has a name, a threshold, evidence and one sentence. Hard rules about a
// trial make it invalid, hard rules about cells make their comparisons invalid;
// soft ones are printed next to the number. It reads what is on file and
// contacts nothing.
package validity

import (
	"fmt"
	"strings"
)

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

// Markdown is the table as the README shows it.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| rule | | passes when | because |\n|---|---|---|---|\n")
	for _, r := range Rules() {
		weight := "soft"
		if r.Hard {
			weight = "**hard**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.Name, weight, strings.ReplaceAll(r.Threshold, "|", "\\|"), strings.ReplaceAll(r.Why, "|", "\\|"))
	}
	return b.String()
}
