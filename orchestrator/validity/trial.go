package validity

import (
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// trialRule is a rule about a single trial.
type trialRule struct {
	Rule
	check func(*Evidence) answer
}

// answer of a rule: text is a sentence against the trial, and its figures;
// missing says why it could not be checked; neither: nothing is wrong, or the rule
// does not concern the trial.
type answer struct{ text, evidence, missing string }

func against(text, evidence string) answer { return answer{text: text, evidence: evidence} }

func unchecked(why string) answer { return answer{missing: why} }

// trialRules is the table, the hard ones first. Two hard ones besides have
// outcomes of their own and no finding: a tool that failed (exit status, error
// text, no final line, 0 bytes) is "failed", and a target that another run took
// over is "invalid".
func trialRules() []trialRule {
	return slices.Concat(bootRulesOfTrial(), clockRules(), kernelRules(), cpuRules(), loadRules())
}

// Trial judges a trial. The findings come in the order of the table; unchecked
// names the rules that could not be applied, and why. A sentence is said once.
func Trial(e *Evidence) (findings []results.Finding, unchecked []string) {
	said := map[string]bool{}
	why := map[string][]string{}
	var order []string
	for _, r := range trialRules() {
		a := r.check(e)
		switch {
		case a.text != "" && !said[a.text]:
			said[a.text] = true
			findings = append(findings, results.Finding{Rule: r.Name, Hard: r.Hard, Text: a.text, Evidence: a.evidence, Threshold: r.Threshold})
		case a.missing != "":
			if why[a.missing] == nil {
				order = append(order, a.missing)
			}
			why[a.missing] = append(why[a.missing], r.Name)
		}
	}
	for _, reason := range order {
		unchecked = append(unchecked, strings.Join(why[reason], ", ")+": "+reason)
	}
	return findings, unchecked
}

// Hard is the first hard finding, nil when there is none.
func Hard(findings []results.Finding) *results.Finding {
	for i := range findings {
		if findings[i].Hard {
			return &findings[i]
		}
	}
	return nil
}
