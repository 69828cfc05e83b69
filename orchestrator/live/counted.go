package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kernsweep/orchestrator/results"
)

// Outcomes are all of them, in the order in which people should see them.
func Outcomes() []results.Outcome {
	return []results.Outcome{results.OK, results.Failed, results.BootFailed, results.Lost, results.Invalid, results.Interrupted,
		results.Skipped, results.SkippedByHand, results.NotApplicable}
}

// Counted are outcomes in a sentence: 35 ok, 2 failed. It is inert; "" for none.
func Counted(n map[results.Outcome]int) string {
	var s []string
	known := Outcomes()
	for _, o := range known {
		if n[o] > 0 {
			s = append(s, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	for _, o := range slices.Sorted(maps.Keys(n)) { // of a later version
		if !slices.Contains(known, o) {
			s = append(s, fmt.Sprintf("%d %s", n[o], Safe(string(o))))
		}
	}
	return strings.Join(s, ", ")
}
