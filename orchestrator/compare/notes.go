package compare

import (
	"fmt"
	"slices"

	"kernsweep/orchestrator/plural"
)

// notes are about all comparisons, or many of them.
func (j *judging) notes(gs []*group, claims []*claim) []string {
	var out []string
	if j.state.Plan.Design.Order == "blocked" {
		out = append(out, "the sweep ran with order = \"blocked\": all boots of a kernel together, so order and kernel cannot be told apart, and nothing here is a claim")
	} else if n := mixed(claims); n > 0 {
		out = append(out, fmt.Sprintf("order and kernel cannot be told apart in %s: each kernel's boots were all together", plural.Of(n, "comparison")))
	}
	guessed, alone := map[string][]string{}, 0
	for _, g := range gs {
		switch {
		case len(g.kernels) < 2:
			alone++
		case g.guessed && !j.state.Plan.Design.NoiseFloor && !slices.Contains(guessed[g.baseline], g.target):
			guessed[g.baseline] = append(guessed[g.baseline], g.target)
		}
	}
	var told []string
	for _, g := range gs {
		if t := guessed[g.baseline]; len(t) > 0 && !slices.Contains(told, g.baseline) {
			told = append(told, g.baseline)
			out = append(out, fmt.Sprintf("no baseline is declared for %s: its first kernel, %s, is taken for it", listed(t), g.baseline))
		}
	}
	if alone > 0 && !j.state.Plan.Design.NoiseFloor {
		out = append(out, plural.Of(alone, "cell")+" with one kernel only: nothing to compare with")
	}
	return append(out, withoutPrimary(claims)...)
}

func mixed(claims []*claim) int {
	n := 0
	for _, c := range claims {
		if c.Primary && c.remedy != "" {
			n++
		}
	}
	return n
}

// withoutPrimary names workloads of which nothing has a verdict.
func withoutPrimary(claims []*claim) []string {
	var order []string
	has := map[string]bool{}
	for _, c := range claims {
		w := c.Workload + "." + c.Scenario
		if !slices.Contains(order, w) {
			order = append(order, w)
		}
		has[w] = has[w] || c.Primary
	}
	order = slices.DeleteFunc(order, func(w string) bool { return has[w] })
	if len(order) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("no primary metric, so intervals and no verdict: %s", listed(order))}
}
